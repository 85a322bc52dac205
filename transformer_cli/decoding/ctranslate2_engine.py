"""The search by CTranslate2 in place of ours: same call, same results, as far as that engine can be made to.

What it does by itself, found by running version 4.8.5:

* ``max_decoding_length`` counts ``</s>`` as our caps do, but there a hypothesis just stops, while ours must end: it
  searches one token less, and what has not ended by then is made to;
* ``min_decoding_length`` does not count ``</s>``, as ours;
* one call has one cap, ours depend on the source's length: only sources of one length share a call;
* its score is log P / length^alpha, ``</s>`` counted: our ``plain`` normalisation; GNMT's it does not have. What must
  not be chosen leaves its softmax, here only the choice: a log P may be larger by the probability of ``<unk>``,
  ``<pad>`` and ``<s>``;
* ``score_batch`` tells the log-probabilities of given tokens in the whole vocabulary, those that ours reports. Where
  they are asked for, the scores of what was chosen are made of them; what is chosen is decided without;
* beam search stops at ``beam_size`` times ``patience`` finished hypotheses, even if a live one could still win. Twice
  the beam, as many as our pool holds, misses less than once: with a beam of 5 a Multi30k model gave our own search's
  translation of 200 of 200 lines, not 199, in 4 % more time; a hardly trained one of 194, not 185, in 25 % more.

So the search is its own, and what it found is ordered by our normalisation. No torch here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import groupby
from typing import Any

from transformer_cli.data.tokenizer import BOS, EOS, PAD
from transformer_cli.decoding.pool import Finished, length_norm
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.errors import RunError, UserError
from transformer_cli.export.extra import ctranslate2
from transformer_cli.export.folder import ExportFolder
from transformer_cli.wording import counted, shortened, whole_number

_PATIENCE = 2  # finished hypotheses per place in the beam, as our pool holds
_LARGEST_PENALTY = 10
_MAPPED = {"beam_size", "n_best", "length_penalty", "max_length_ratio", "min_length", "no_repeat_ngram"}
_MAPPED |= {"length_normalization", "batch_size", "batch_tokens", "refill", "look_every", "seed", "log_probs"}


class CTranslate2Engine:
    """Searches translations of token ids with an exported model."""

    def __init__(self, folder: ExportFolder, device: str = "auto") -> None:
        """Load the model.

        Args:
            folder: the export; its token ids are those of our tokenizer.
            device: ``auto`` (CUDA if there is one), ``cpu``, ``cuda`` or ``cuda:N``.

        Raises:
            UserError: CTranslate2 is not installed, or the device does not exist.
            RunError: the model cannot be loaded.
        """
        self.max_length = folder.positions
        self._tokenizer = folder.tokenizer
        self._pieces = folder.tokenizer.tgt_pieces(range(folder.tokenizer.tgt_vocab_size))
        self._ids = {piece: number for number, piece in enumerate(self._pieces)}
        self._translator = _loaded(folder, device)

    def search(self, asked: Sequence[Source], settings: DecodeSettings) -> list[list[Finished]]:
        """Return the finished hypotheses of each source, best first; see ``BatchDecoder.search``.

        Args:
            asked: sources, none longer than the model's positions.
            settings: how to search, and how large a batch may be.

        Raises:
            UserError: a setting asks for what CTranslate2 cannot do.
        """
        refuse_unmapped(settings)
        if any(source.prefix for source in asked):
            raise unknown("prefixes")
        if any(source.forbidden or source.required for source in asked):
            raise unknown("phrases")
        sources = [source.ids for source in asked]
        found: list[list[Finished]] = [[] for _ in sources]
        for batch in _batches(sources, settings):
            results = self._search_batch([sources[number] for number in batch], settings)
            for number, result in zip(batch, results, strict=True):
                found[number] = result
        return found

    def attention(self, pairs: Sequence[Any], settings: DecodeSettings) -> Any:
        """Tell attention; ``search`` refuses to be asked for alignments before it comes to this.

        Raises:
            UserError: always.
        """
        raise UserError("the engine ctranslate2 tells no attention", hint="use --engine torch")

    def told(self, asked: Sequence[tuple[Sequence[int], Finished]], settings: DecodeSettings) -> list[Finished]:
        """Return translations of sources with the log-probabilities of their tokens, and the scores that follow."""
        rows = [
            (self._tokenizer.src_pieces(source), [self._pieces[token] for token in finished.tokens])
            for source, finished in asked
        ]
        return [
            replace(finished, score=sum(values) / length_norm(len(values), settings), log_probs=values)
            for (_, finished), values in zip(asked, self._log_probs(rows, settings), strict=True)
        ]

    def close(self) -> None:
        """Nothing is to be given back."""

    def _search_batch(self, sources: list[Sequence[int]], settings: DecodeSettings) -> list[list[Finished]]:
        """Search sources of one length."""
        cap = min(settings.max_length(len(sources[0])), self.max_length)
        patience = 1 if settings.beam_size == 1 else _PATIENCE
        pieces = [self._tokenizer.src_pieces(source) for source in sources]
        results = self._translator.translate_batch(
            pieces,
            beam_size=settings.beam_size,
            patience=patience,
            num_hypotheses=settings.beam_size * patience,
            length_penalty=settings.length_penalty,
            max_decoding_length=cap - 1,
            min_decoding_length=min(settings.min_length, cap - 1),
            return_scores=True,
            **self._choice(settings),
        )
        pairs = zip(pieces, results, strict=True)
        cut = [(source, tokens) for source, result in pairs for tokens in result.hypotheses if not self._ended(tokens)]
        made_to_end = iter(self._made_to_end(cut, settings))
        return [self._finished(result, made_to_end, settings) for result in results]

    def _made_to_end(
        self, rows: list[tuple[list[str], list[str]]], settings: DecodeSettings
    ) -> Iterator[tuple[float, bool]]:
        """End hypotheses (source, tokens) of the greatest length; give log P and whether ``</s>`` was not the best."""
        if not rows:
            return
        sources, tokens = map(list, zip(*rows, strict=True))
        grown = self._translator.translate_batch(
            sources,
            tokens,  # as the start of the translation
            beam_size=1,
            max_decoding_length=len(tokens[0]) + 1,
            max_batch_size=settings.batch_size,
            **self._choice(settings),
        )
        for values, result in zip(self._log_probs(rows, settings), grown, strict=True):
            yield sum(values), not self._ended(result.hypotheses[0])

    def _log_probs(self, rows: list[tuple[list[str], list[str]]], settings: DecodeSettings) -> list[list[float]]:
        """Return log P of each token, and of ``</s>``, of hypotheses (source, tokens)."""
        sources, tokens = [source for source, _ in rows], [tokens for _, tokens in rows]
        how = {"max_batch_size": settings.batch_size, "max_input_length": 0}
        return [scored.log_probs for scored in self._translator.score_batch(sources, tokens, **how)]

    def _choice(self, settings: DecodeSettings) -> dict[str, Any]:
        """Return what may be chosen, and that nothing is cut off."""
        return {
            "no_repeat_ngram_size": settings.no_repeat_ngram,
            "disable_unk": True,
            "suppress_sequences": [[self._pieces[PAD]], [self._pieces[BOS]]],
            "max_input_length": 0,
            "return_end_token": True,
        }

    def _finished(
        self, result: Any, made_to_end: Iterator[tuple[float, bool]], settings: DecodeSettings
    ) -> list[Finished]:
        """Return the hypotheses of a source, ordered by our length normalisation."""
        found = []
        for hypothesis, score in zip(result.hypotheses, result.scores, strict=True):
            if self._ended(hypothesis):
                tokens, total, capped = hypothesis[:-1], score * len(hypothesis) ** settings.length_penalty, False
            else:
                tokens, (total, capped) = hypothesis, next(made_to_end)
            norm = length_norm(len(tokens) + 1, settings)
            found.append(Finished(total / norm, [self._ids[token] for token in tokens], capped))
        return sorted(found, key=lambda finished: -finished.score)

    def _ended(self, tokens: list[str]) -> bool:
        return tokens[-1:] == [self._pieces[EOS]]


def refuse_unmapped(settings: DecodeSettings) -> None:
    """Check that no setting would be silently without effect.

    Raises:
        UserError: one that is not mapped differs from its default, or cannot be computed.
    """
    if settings.length_penalty > _LARGEST_PENALTY:
        raise UserError(
            "length_penalty is too large for the engine ctranslate2, which divides by length^alpha in float32",
            got=settings.length_penalty,
            expected=f"at most {_LARGEST_PENALTY}",
            hint="use --engine torch",
        )
    for field in fields(settings):
        if field.name not in _MAPPED and getattr(settings, field.name) != field.default:
            raise unknown(field.name)


def unknown(what: str) -> UserError:
    """Return the refusal of an option or a setting that this engine has nothing for."""
    return UserError(f"the engine ctranslate2 does not know {what}", hint="use --engine torch, or leave it away")


def differences(settings: DecodeSettings) -> str | None:
    """Say in what results may differ from our own search; None if in ties and the last bits alone."""
    if settings.beam_size == 1:
        return None
    return (
        f"engine ctranslate2: beam search prunes by score / length^{settings.length_penalty:g} and stops at "
        f"{settings.beam_size * _PATIENCE} finished hypotheses; --engine torch orders what it finds alike, "
        "but may find others"
    )


def _batches(sources: Sequence[Sequence[int]], settings: DecodeSettings) -> Iterator[list[int]]:
    """Group sources (by number) of one length each, short ones first."""
    order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
    for length, same in groupby(order, key=lambda number: len(sources[number])):
        numbers, size = list(same), max(1, min(settings.batch_size, settings.batch_tokens // length))
        yield from (numbers[start : start + size] for start in range(0, len(numbers), size))


def _loaded(folder: ExportFolder, device: str) -> Any:
    package = ctranslate2()
    kind, index = _device(device, package.get_cuda_device_count())
    folder.refuse_damaged_model()
    try:
        engine = package.Translator(
            str(folder.path),
            device=kind,
            device_index=index,
            compute_type=_compute_type(folder.quantization, package.get_supported_compute_types(kind, index)),
        )
        end, pad = folder.tokenizer.tgt_pieces([EOS, PAD])  # a vocabulary that does not fit fails only when it is used
        engine.translate_batch([[end, end]], max_decoding_length=1, suppress_sequences=[[pad]])
        return engine
    except (RuntimeError, ValueError, IndexError) as error:
        raise RunError("CTranslate2 cannot load the model", where=str(folder.path), got=error) from None


def _device(name: str, n_gpus: int) -> tuple[str, int]:
    kind, _, index = ("cuda" if n_gpus else "cpu", "", "") if name == "auto" else name.partition(":")
    given = whole_number(index or "0", 0, 10**6)
    if kind not in ("cpu", "cuda") or given is None:
        raise UserError(f"unknown device {shortened(name)!r}", expected="auto, cpu, cuda or cuda:N")
    number = given if kind == "cuda" else 0
    if kind == "cuda" and number >= n_gpus:
        raise UserError(f"device {name} is not there", got=counted(n_gpus, "CUDA device"), hint="use --device cpu")
    return kind, number


def _compute_type(stored: str, supported: set[str]) -> str:
    """Return in which type to compute: as stored, or with float32 in place of 16 bits where the device has none."""
    wide = stored.replace("bfloat16", "float32").replace("float16", "float32")
    return next((kind for kind in (stored, wide) if kind in supported), "default")
