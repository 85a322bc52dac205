"""From lines of text to their translations, one for one and in order.

Lines are read in windows: those of a window are sorted by length and share batches, so a window bounds the memory that
an endless stream needs, and a line is answered as soon as its window is full. The text of a line does not depend on its
window, batch, order or neighbours (``batch_decoder.py``). Files, formats and warnings are the command's.

Who searches is an engine behind one method: ours, which needs torch and is imported only when it is used, or
CTranslate2's (``ctranslate2_engine.py``).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_cli.config import Config
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.decoding.aligner import Aligner
from transformer_cli.decoding.ctranslate2_engine import CTranslate2Engine
from transformer_cli.decoding.parts import LineCutter
from transformer_cli.decoding.phrases import ANYTHING, Phrases
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source, once_if_alike
from transformer_cli.decoding.texts import chosen_texts, hypothesis
from transformer_cli.decoding.translation import Decoder, Engine, Text, Translation, told
from transformer_cli.decoding.wishes import Wishes
from transformer_cli.errors import UserError
from transformer_cli.export.folder import ExportFolder

if TYPE_CHECKING:
    from transformer_cli.decoding.shortlist import Shortlist
    from transformer_cli.model.transformer import Transformer
    from transformer_cli.runtime import Runtime

#: Lines read ahead by default: enough for full batches of every length.
WINDOW = 2048


class Translator:
    """A model that translates text."""

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: Tokenizer,
        config: Config,
        to: str | None = None,
        *,
        max_length: int | None = None,
        shortlist: "Callable[[], Shortlist] | None" = None,
    ) -> None:
        """Wrap what searches.

        Args:
            decoder: searches translations of token ids.
            tokenizer: the model's own.
            config: ``decode``, ``data.max_length`` and ``data.tgt_lang`` are used.
            to: language to translate into, one of those the model was trained for; None: ``data.tgt_lang``.
            max_length: longest source, in tokens, that the model can take; None: any.
            shortlist: gives what settings with ``shortlist`` need.

        Raises:
            UserError: the model was not trained for that language.
        """
        self.tokenizer, self.config = tokenizer, config
        self.tgt_lang = config.data.target(to)
        self._decoder, self._open_shortlist = decoder, shortlist
        langs = config.data.src_lang, self.tgt_lang
        before = [tokenizer.tag(self.tgt_lang)] if config.data.more_targets else []
        longest = min(config.data.max_length, max_length or config.data.max_length)
        self._cutter = LineCutter(tokenizer, config.data.src_lang, before, longest)
        #: Prepares what may be wished of a translation.
        self.wishes = Wishes(tokenizer, *langs, longest - 1)
        self._aligner = Aligner(tokenizer, *langs, len(before), decoder.attention)

    @classmethod
    def of_model(
        cls,
        model: "Transformer",
        tokenizer: Tokenizer,
        config: Config,
        runtime: "Runtime",
        to: str | None = None,
        shortlist: "Shortlist | None" = None,
    ) -> "Translator":
        """Wrap a model, which may be one that is being trained: translating leaves no trace in it.

        Args:
            model: on the runtime's device.
            tokenizer: as of ``__init__``.
            config: as of ``__init__``.
            runtime: device and precision.
            to: as of ``__init__``.
            shortlist: of the model's training pairs.

        Raises:
            UserError: the model was not trained for that language.
        """
        from transformer_cli.decoding.batch_decoder import BatchDecoder

        given = None if shortlist is None else lambda: shortlist
        decoder = BatchDecoder(model, runtime)
        return cls(decoder, tokenizer, config, to, max_length=model.max_length, shortlist=given)

    @classmethod
    def from_run(
        cls, run: str | Path, device: str = "auto", to: str | None = None, engine: Engine = "torch", workers: int = 1
    ) -> "Translator":
        """Load a run folder, or one of its checkpoints, to translate into its main or another language.

        Args:
            run: with the engine ``ctranslate2`` an exported folder, or a run with an export inside or beside it.
            device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
            to: language to translate into; None: the main one.
            engine: who searches.
            workers: how many processes share the work of our engine; ``close`` ends them.

        Raises:
            RunError: there is no usable model at that place.
            UserError: there is no such device or language, the device cannot compute the model, or CTranslate2 is not
                installed.
        """
        if engine == "ctranslate2":
            return cls._from_export(Path(run), device, to)
        return cls.from_runs([run], device, to, workers)

    @classmethod
    def from_runs(
        cls, runs: Sequence[str | Path], device: str = "auto", to: str | None = None, workers: int = 1
    ) -> "Translator":
        """Load runs that translate together, by the search settings of the first (``ensemble.py``).

        Raises:
            RunError: there is no usable model at a place.
            UserError: there is no such device or language, or the runs do not fit it or each other (``load_models``).
        """
        from transformer_cli.decoding.batch_decoder import BatchDecoder
        from transformer_cli.decoding.ensemble import load_models, shortest_positions
        from transformer_cli.decoding.shortlist import Shortlist
        from transformer_cli.runtime import Runtime

        runtime = Runtime.resolve(device)
        if workers > 1:
            return cls._of_workers([Path(run) for run in runs], str(runtime.device), to, workers)
        models, tokenizer, config = load_models(runs, runtime.device)
        decoder = BatchDecoder(models[0], runtime, models[1:], fixed=True)
        limit = shortest_positions(models)
        return cls(decoder, tokenizer, config, to, max_length=limit, shortlist=lambda: Shortlist.of_run(runs[0]))

    @classmethod
    def _of_workers(cls, runs: Sequence[Path], device: str, to: str | None, n_workers: int) -> "Translator":
        from transformer_cli.checkpoint.loading import open_model
        from transformer_cli.decoding.shortlist import Shortlist
        from transformer_cli.decoding.workers import Workers

        folders = [open_model(run) for run in runs]
        ending = [f.config.data.max_length for f in folders if f.config.model.ends_at_max_length]
        main, limit = folders[0], min(ending, default=None)
        workers, first = Workers(runs, n_workers, device), runs[0]
        return cls(
            workers, main.tokenizer, main.config, to, max_length=limit, shortlist=lambda: Shortlist.of_run(first)
        )

    def close(self) -> None:
        """End the processes of workers."""
        self._decoder.close()

    @classmethod
    def _from_export(cls, run: Path, device: str, to: str | None) -> "Translator":
        folder = ExportFolder.of(run)
        decoder = CTranslate2Engine(folder, device)
        return cls(decoder, folder.tokenizer, folder.config, to, max_length=decoder.max_length)

    @cached_property
    def shortlist(self) -> "Shortlist":
        """The shortlist of the run, or the first of several.

        Raises:
            RunError: the run has none that fits.
            UserError: none can be used here.
        """
        if self._open_shortlist is None:
            raise UserError("only our own engine searches with a shortlist", hint="--engine torch, or --no-shortlist")
        return self._open_shortlist()

    def translate(
        self,
        lines: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
    ) -> list[str]:
        """Return the best translation of each line; what is not given is as the recipe, or ``DecodeSettings``, has it.

        Raises:
            RunError: the recipe asks for a shortlist, and the run has none.
            UserError: a value is out of range.
            TypeError: one string is given instead of a list of lines.
        """
        if isinstance(lines, str):
            raise TypeError("translate takes a list of lines; for one line give [line]")
        given = {"beam_size": beam_size, "length_penalty": length_penalty}
        given |= {"batch_size": batch_size, "batch_tokens": batch_tokens}
        settings = DecodeSettings.from_config(self.config.decode).but(given)
        return [translation.text for translation in self.stream(lines, settings)]

    def stream(self, lines: Iterable[str], settings: DecodeSettings, *, window: int = WINDOW) -> Iterator[Translation]:
        """Translate lines as they come, in order, never holding more than a window of them.

        Args:
            lines: any number of lines, without line ends.
            settings: how to search.
            window: lines read before the first of them is answered; 1 answers line by line.

        Raises:
            RunError: a shortlist is asked for, and the run has none.
            UserError: the engine cannot do what is asked for.
        """
        iterator, first = iter(lines), 0
        while part := list(islice(iterator, window)):
            yield from self.translate_window(part, settings, first)
            first += len(part)

    def translate_window(
        self,
        lines: Sequence[str],
        settings: DecodeSettings,
        first: int = 0,
        prefixes: Sequence[str | None] = (),
        phrases: Phrases = ANYTHING,
    ) -> list[Translation]:
        """Translate lines that are all there already; the building block of ``stream``.

        Args:
            lines: without line ends.
            settings: how to search.
            first: number of the first of them in the input, from 0: samples depend on it.
            prefixes: text with which the translation of each line has to start, or None; see ``wishes.py``. A blank
                line stays blank.
            phrases: what translations must and must not hold.

        Raises:
            RunError: a shortlist is asked for, and the run has none.
            UserError: a prefix cannot be forced, or the engine cannot do what is asked for.
        """
        forced = [self.wishes.prefix_ids(prefix, phrases) for prefix in prefixes or [None] * len(lines)]
        parts = self._cutter.parts(lines)
        listed = self.shortlist.of if settings.shortlist else lambda ids: None
        sources = [
            Source(
                ids, (number, part), () if part else prefix, phrases.required_ids(text), phrases.forbidden, listed(ids)
            )
            for number, (line, of_line, prefix) in enumerate(zip(lines, parts, forced, strict=True), start=first)
            for part, (ids, text) in enumerate(zip(of_line, self._cutter.texts(line, of_line), strict=True))
        ]
        found = self._searched(sources, settings)
        by_line = [list(islice(found, len(of_line))) for of_line in parts]
        chosen = [chosen_texts(of_line, settings, self.tokenizer, self.tgt_lang) for of_line in by_line]
        if settings.log_probs:
            chosen = told(self._decoder, parts, chosen, settings)
        translations = [self._translation(*one) for one in zip(lines, parts, chosen, strict=True)]
        if settings.alignment:
            alignments = self._aligner.align(lines, parts, chosen, settings)
            translations = [_with_alignments(*both) for both in zip(translations, alignments, strict=True)]
        return translations

    def _searched(self, sources: list[Source], settings: DecodeSettings) -> Iterator[list[Finished]]:
        """Search each source; equal ones once, but for samples, which depend on the number of the line."""
        search = partial(self._decoder.search, settings=settings)
        return iter(search(sources) if settings.sampling else once_if_alike(search, sources))

    def _translation(self, line: str, parts: list[list[int]], texts: list[Text]) -> Translation:
        hypotheses = [hypothesis(*text, self.tokenizer) for text in texts]
        return Translation(line, hypotheses, len(parts), self._cutter.is_spelled(parts))


def _with_alignments(translation: Translation, alignments: list[str | None]) -> Translation:
    pairs = zip(translation.hypotheses, alignments, strict=True)
    return replace(translation, hypotheses=[replace(hypothesis, alignment=found) for hypothesis, found in pairs])
