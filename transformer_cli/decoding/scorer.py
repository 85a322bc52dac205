"""From lines of text and their given translations to scores. Files and formats are the command's."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer_cli.config import Config
from transformer_cli.data.tokenizer import EOS, Tokenizer
from transformer_cli.decoding.ensemble import load_models, shortest_positions
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.scoring import Pair, score_pairs
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.errors import UserError
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime
from transformer_cli.wording import counted

#: Tokens of a side, with ``</s>``. All look at all, so twice as many cost four times as much: a stray line of 100,000
#: characters would stop everything behind it for ten minutes, and say nothing of a model that saw sentences.
LONGEST = 4096


@dataclass(frozen=True)
class ScoredPair:
    """A line and its given translation."""

    source: str
    target: str
    score: float  # log-probability, in nats, over the normalisation of its length
    tokens: list[str]
    log_probs: list[float]  # of each token, and of </s>; none if both lines are blank


class Scorer:
    """A model, or several, that say how probable translations are."""

    def __init__(
        self,
        models: Sequence[Transformer],
        tokenizer: Tokenizer,
        config: Config,
        runtime: Runtime,
        to: str | None = None,
    ) -> None:
        """Wrap a model, or several that translate together.

        Args:
            models: on the runtime's device.
            tokenizer: the models' own.
            config: ``data`` and ``decode`` are used.
            runtime: device and precision.
            to: language of the translations, one of those they were trained for; None: its main one.

        Raises:
            UserError: they were not trained for that language.
        """
        self.config = config
        self._models, self._tokenizer, self._runtime = models, tokenizer, runtime
        tgt_lang = config.data.target(to)
        self._before = [tokenizer.tag(tgt_lang)] if config.data.more_targets else []

    @classmethod
    def from_runs(cls, runs: Sequence[Path], device: str = "auto", to: str | None = None) -> "Scorer":
        """Load run folders, or checkpoints of runs.

        Raises:
            RunError: there is no usable model at a place.
            UserError: there is no such device or language, or the runs do not fit it or each other (``load_models``).
        """
        runtime = Runtime.resolve(device)
        return cls(*load_models(runs, runtime.device), runtime, to)

    def score(self, lines: Sequence[str], targets: Sequence[str], settings: DecodeSettings) -> list[ScoredPair]:
        """Score the translation of each line.

        Two blank lines score 0, as a blank line and its translation do. A long line is not cut into pieces.

        Args:
            lines: sources, without line ends.
            targets: their translations; ``check`` has refused pairs that are too long.
            settings: length normalisation, and how large a batch may be.
        """
        pairs = self._pairs(lines, targets)
        asked = [pair for pair in pairs if pair is not None]
        found = iter(score_pairs(self._models, self._runtime, asked, settings))
        blank = Finished(0.0, [], capped=False)
        scored = [blank if pair is None else next(found) for pair in pairs]
        return [
            ScoredPair(line, target, one.score, self._tokenizer.tgt_pieces(one.tokens), one.log_probs)
            for line, target, one in zip(lines, targets, scored, strict=True)
        ]

    def check(self, line: str, target: str) -> None:
        """Refuse a pair that is too long to be scored as a whole.

        Raises:
            UserError: the model has no positions for one of them, or it has more than ``LONGEST`` tokens.
        """
        positions = shortest_positions(self._models) or LONGEST
        limit = min(positions, LONGEST)
        if (pair := self._pairs([line], [target])[0]) is not None:
            for side, ids in (("source", pair.src), ("target", [*pair.tgt, EOS])):
                if len(ids) > limit:
                    end = "the model's positions" if positions < LONGEST else "what is scored as a whole"
                    raise UserError(
                        f"the {side} is longer than {end}",
                        got=f"{counted(len(ids), 'token')}, </s> counted",
                        expected=f"at most {limit:,}",
                        hint="cut the line where sentences end, on both sides",
                    )

    def _pairs(self, lines: Sequence[str], targets: Sequence[str]) -> list[Pair | None]:
        ids = zip(self._tokenizer.encode_src(lines), self._tokenizer.encode_tgt(targets), strict=True)
        return [
            Pair([*self._before, *src, EOS], tgt) if line.strip() or target.strip() else None
            for line, target, (src, tgt) in zip(lines, targets, ids, strict=True)
        ]
