"""Many sentences to their translations, as token ids: which of them are translated side by side.

Sentences of similar length share a cache, long ones first. ``search.py`` is the loop, ``model_steps.py`` the model.
"""

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from transformer_cli.decoding.attention_reader import Pair, read_attention
from transformer_cli.decoding.beam import BeamSearch
from transformer_cli.decoding.constrained import ConstrainedBeam
from transformer_cli.decoding.ensemble import EnsembleSteps, shortest_positions
from transformer_cli.decoding.model_steps import (
    ModelSteps,
    answering,
    canonical_length,
    canonical_places,
    room_for_keys,
)
from transformer_cli.decoding.own_tokens import with_ids, with_own_tokens
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.sampling import Sampling
from transformer_cli.decoding.search import search
from transformer_cli.decoding.settings import WIDEST, DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.errors import UserError
from transformer_cli.model.packed import PackedLayer
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime

#: Most hypotheses side by side: the scores of their attention grow with their number and with the width of a beam.
_WIDEST = 2048


def length_groups(lengths: Sequence[int], batch_size: int, batch_tokens: int) -> list[tuple[list[int], int]]:
    """Group sentences (by number) for caches of one source length each, long sentences first.

    A group ends where sentences are half as long as its longest, so that twice as many fit into the budget; but not
    before it fills its places: a few long sentences are not worth steps of their own.

    Args:
        lengths: canonical length of each sentence.
        batch_size: most places of a group.
        batch_tokens: most source tokens of a group's places, padding counted; a sentence longer than that gets one.

    Returns:
        Sentences and number of places of each group; sentences of more than its places take turns.
    """
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    groups: list[tuple[list[int], int]] = []
    for number in order:
        group, n_places = groups[-1] if groups else ([], 0)
        if len(group) >= n_places and (not group or 2 * lengths[number] <= lengths[group[0]]):
            group, n_places = [], max(1, min(batch_size, batch_tokens // lengths[number]))
            groups.append((group, n_places))
        group.append(number)
    return groups


def _by_width(sentences: Sequence[Source]) -> dict[int, list[int]]:
    """Group sentences (by number) by how much wider their beams are: by a hypothesis for each required token."""
    groups: dict[int, list[int]] = {}
    for number, sentence in enumerate(sentences):
        groups.setdefault(sentence.n_required, []).append(number)
    return groups


class BatchDecoder:
    """Searches translations of token ids with a model, or with several that translate together."""

    def __init__(
        self, model: Transformer, runtime: Runtime, others: Sequence[Transformer] = (), *, fixed: bool = False
    ) -> None:
        """Wrap models on the runtime's device.

        Args:
            model: the one whose attention is told.
            runtime: device and precision.
            others: that translate together with it.
            fixed: no weight will change any more, so copies of them serve all searches.
        """
        self._model, self._runtime = model, runtime
        self._models = [model, *others]
        self._packed: dict[int, list[PackedLayer]] | None = {} if fixed else None
        self._max_length = shortest_positions(self._models)

    def search(self, sentences: Sequence[Source], settings: DecodeSettings) -> list[list[Finished]]:
        """Return the finished hypotheses of each sentence, best first.

        Models are left in the mode (training or not) and the random generators in the state in which they were.

        Args:
            sentences: none longer than the models' positions.
            settings: how to search, and how many sentences may be side by side.

        Raises:
            UserError: samples are asked for that have to hold phrases.
        """
        if settings.sampling and any(sentence.required for sentence in sentences):
            raise UserError("what is drawn cannot be made to hold phrases", hint="search with a beam")
        sentences = [with_own_tokens(replace(one, cap=self._cap(one, settings))) for one in sentences]
        lengths = [canonical_length(len(sentence.ids), self._max_length) for sentence in sentences]
        found: list[list[Finished]] = [[] for _ in sentences]
        with answering(self._models, self._runtime):
            for wider, alike in _by_width(sentences).items():
                how = replace(settings, beam_size=min(settings.beam_size + wider, WIDEST))
                of_alike = [lengths[number] for number in alike]
                for chosen, n_places in length_groups(of_alike, settings.batch_size, settings.batch_tokens):
                    numbers = [alike[number] for number in chosen]
                    group = [sentences[number] for number in numbers]
                    for number, result in zip(numbers, self._search(group, n_places, how), strict=True):
                        found[number] = [with_ids(sentences[number], one) for one in result]
        return found

    def attention(self, pairs: Sequence[Pair], settings: DecodeSettings) -> list[NDArray[np.float32]]:
        """Return how each target token attends to its source; see ``read_attention``."""
        return read_attention(self._model, self._runtime, pairs, settings)

    def told(self, asked: Sequence[tuple[Sequence[int], Finished]], settings: DecodeSettings) -> list[Finished]:
        """Return translations of sources as they are: the search has told the log-probabilities of their tokens."""
        return [finished for _, finished in asked]

    def close(self) -> None:
        """Nothing is to be given back."""

    def _cap(self, sentence: Source, settings: DecodeSettings) -> int:
        cap = max(settings.max_length(len(sentence.ids)), len(sentence.prefix) + sentence.n_required + 1)
        return cap if self._max_length is None else min(cap, self._max_length)

    def _search(self, sentences: list[Source], n_places: int, settings: DecodeSettings) -> list[list[Finished]]:
        width, device = settings.beam_size, self._runtime.device
        n_places = canonical_places(min(n_places, len(sentences), max(1, _WIDEST // width)), width)
        members = [self._steps(model, sentences, n_places, width) for model in self._models]
        steps = EnsembleSteps(members) if len(members) > 1 else members[0]
        longest = max(sentence.cap for sentence in sentences)
        if any(sentence.forbidden for sentence in sentences):
            settings = replace(settings, look_every=1)  # the host reads what grows at each step anyway
        beam = ConstrainedBeam if sentences[0].required else BeamSearch
        chooser = (Sampling if settings.sampling else beam)(n_places, longest, settings, device)
        usable = functools.partial(canonical_places, width=width)
        return search(steps, chooser, sentences, n_places, refill=settings.refill, usable_places=usable)

    def _steps(self, model: Transformer, sentences: list[Source], n_places: int, width: int) -> ModelSteps:
        longest = max(len(sentence.ids) for sentence in sentences)
        room = room_for_keys(model, canonical_length(longest, model.max_length))
        longest_list = max((len(one.listed) for one in sentences if one.listed is not None), default=None)
        return ModelSteps(model, n_places, width, room, self._runtime, longest_list, self._packed_layers(model))

    def _packed_layers(self, model: Transformer) -> list[PackedLayer] | None:
        if self._packed is None:
            return None
        if id(model) not in self._packed:
            with self._runtime.autocast():
                self._packed[id(model)] = model.packed_layers()
        return self._packed[id(model)]
