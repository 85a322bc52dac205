"""When the host looks at what a search has done changes no result, and between two looks no step asks the device."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from decoding_rig import TableModel, config, run_sentences, sentences, settings, tokenizer, transformer
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from transformer_cli.decoding.batch_decoder import BatchDecoder
from transformer_cli.decoding.beam import BeamSearch
from transformer_cli.decoding.constrained import ConstrainedBeam
from transformer_cli.decoding.ensemble import EnsembleSteps
from transformer_cli.decoding.forbidden import ForbiddenPhrases
from transformer_cli.decoding.model_steps import ModelSteps, canonical_places, room_for_keys
from transformer_cli.decoding.sampling import Sampling
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime

SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 5, "n_best": 5},
    "early stopping": {"beam_size": 3, "n_best": 3, "early_stopping": True},
    "plain norm": {"beam_size": 2, "length_penalty": 2.0, "length_normalization": "plain"},
    "limits": {"beam_size": 3, "n_best": 3, "no_repeat_ngram": 2, "min_length": 6},
    "greedy limits": {"beam_size": 1, "no_repeat_ngram": 1, "min_length": 3},
    "samples": {"beam_size": 4, "n_best": 4, "sampling": True},
    "shaped samples": {"beam_size": 2, "sampling": True, "top_k": 5, "top_p": 0.8, "no_repeat_ngram": 2},
}
EVERY = pytest.mark.parametrize("how", SEARCHES.values(), ids=SEARCHES)
V = 12


def table() -> TableModel:
    return TableModel(2, V, 1.5)


def asked() -> list[Source]:
    """Sentences of very different caps, some with a prefix, one that forbids the text of a token."""
    caps = [5, 17, 9, 2, 12, 30, 3, 8, 21, 14, 6]
    found = [Source([number], number=(number, 0), cap=cap) for number, cap in enumerate(caps)]
    found[4], found[8] = replace(found[4], prefix=[7, 7, 9]), replace(found[8], prefix=[5])
    forbidden = ForbiddenPhrases(["f"], [b"", b"", b"", b"", *(bytes([token]) for token in b"abcdefgh")])
    found[9] = replace(found[9], forbidden=forbidden)
    return found


@EVERY
@pytest.mark.parametrize("look_every", [2, 8, 100])
def test_when_the_host_looks_changes_nothing(how: dict[str, Any], look_every: int) -> None:
    expected = run_sentences(table(), asked(), settings(**how))
    assert {found[0].capped for found in expected} == {False, True}
    for n_places, refill in [(None, True), (4, True), (3, False), (1, True)]:
        seldom = settings(**how, look_every=look_every, refill=refill)
        assert run_sentences(table(), asked(), seldom, n_places) == expected


@EVERY
def test_learned_positions_do_not_end_before_a_look(how: dict[str, Any]) -> None:
    model = transformer(config(data={"max_length": 24}, model={"positions": "learned"}), weights=2.0)
    decoder, most = BatchDecoder(model, Runtime.resolve("cpu")), DecodeSettings(**how, batch_size=5)
    sources = [Source([*ids, 3], number=(n, 0)) for n, ids in enumerate(encoded(14))]
    expected = decoder.search(sources, most)
    assert any(len(one.tokens) == 23 for found in expected for one in found)
    for changes in ({"look_every": 2}, {"look_every": 8}, {"look_every": 8, "refill": False, "batch_size": 50}):
        assert decoder.search(sources, most.but(changes)) == expected


def encoded(n: int) -> list[list[int]]:
    return [ids for ids in tokenizer().encode_src(sentences(n, longest=6)) if len(ids) < 24]


@pytest.mark.parametrize("how", [SEARCHES["beam"], SEARCHES["samples"]])
def test_a_look_comes_in_time(how: dict[str, Any]) -> None:
    def n_steps(look_every: int | None, caps: tuple[int, ...]) -> int:
        model = table()
        some = [Source([number], number=(number, 0), cap=cap) for number, cap in enumerate(caps)]
        run_sentences(model, some, settings(**how, look_every=look_every))
        return len(model.busy_per_step)

    assert n_steps(100, (3, 3)) == 3  # at the cap, not later
    caps = (40, 50, 60)
    assert n_steps(None, caps) == n_steps(1, caps) < n_steps(8, caps) <= n_steps(1, caps) + 7


def test_required_phrases_are_looked_after_at_every_step() -> None:
    some = [replace(one, required=[[8, 9]]) for one in asked()]
    often, seldom = table(), table()
    how = settings(beam_size=5, n_best=3)
    assert run_sentences(often, some, how) == run_sentences(seldom, some, how.but({"look_every": 8}))
    assert often.busy_per_step == seldom.busy_per_step
    assert ConstrainedBeam(4, 9, how, "meta")._history._every == 1


# No step waits. Tensors on the device "meta" have no numbers, so whoever asks for one fails; the rest is watched.

_ASKING = {"_local_scalar_dense", "nonzero", "is_nonzero", "equal", "masked_select", "item"}
_INDEXING = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)


class Operations(TorchDispatchMode):
    """Refuses operations that a GPU would be waited for: those that ask for numbers, and blocking copies."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(zip((of.name for of in func._schema.arguments), args, strict=False)) | (kwargs or {})
        found = func(*args, **(kwargs or {}))
        kinds = {of.device.type for of in tree_leaves((args, found)) if isinstance(of, torch.Tensor)}
        if "meta" in kinds:
            indices = [of for of in tree_leaves(given.get("indices")) if isinstance(of, torch.Tensor)]
            assert func.overloadpacket.__name__ not in _ASKING, func
            assert not any(of.dtype is torch.bool for of in indices), f"{func} has to count the indices"
            assert len(kinds) == 1 or given.get("non_blocking"), f"{func} from one device to another"
        return found


class Calls(TorchFunctionMode):
    """Refuses what copies lists to a device before there is an operation."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _INDEXING and args[0].is_meta:
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            assert not any(isinstance(of, list | np.ndarray) for of in index), "an index that is a list"
        found = func(*args, **(kwargs or {}))
        assert func is not torch.tensor or not found.is_meta, "a tensor of a list"
        return found


@contextmanager
def no_waiting() -> Iterator[None]:
    with Operations(), Calls():
        yield


@pytest.mark.parametrize(
    "asking",
    [
        lambda x: bool((x > 0).any()),
        lambda x: int(x.max()),
        lambda x: x.tolist(),
        lambda x: x.cpu(),
        lambda x: (x > 0).nonzero(),
        lambda x: x[x > 0],
        lambda x: torch.equal(x, x),
        lambda x: x[[0, 1]],
        lambda x: x.index_put_([x > 0], x.new_zeros(3)),
        lambda x: x.__setitem__([0, 1], 0),
        lambda x: x.__setitem__((slice(None), np.array([0, 1])), 0),
        lambda x: torch.ones(3).to(x.device),
        lambda x: torch.tensor([1, 2], device=x.device),
        lambda x: x.copy_(torch.ones(3)),
    ],
)
def test_waiting_is_noticed(asking: Callable[[torch.Tensor], object]) -> None:
    x = torch.ones(3, 3, device="meta")
    with pytest.raises((AssertionError, NotImplementedError, RuntimeError)), no_waiting():
        asking(x)


class Somewhere(Runtime):
    """A device that autocast does not know."""

    def autocast(self) -> Any:
        return nullcontext()


@contextmanager
def strict_gpu() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.fixture
def strict(device: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """Let models compute on a device; what is given makes a context in which nothing may wait."""
    if device == "meta":
        monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)
        monkeypatch.setattr(torch.Tensor, "tolist", lambda broken: [False] * len(broken))  # as a place is taken
    with torch.inference_mode():
        yield no_waiting if device == "meta" else strict_gpu


def taken(models: list[Transformer], how: DecodeSettings, device: str, **more: Any) -> tuple[Any, Any]:
    """Return a model and a chooser whose places are taken."""
    runtime = Somewhere(torch.device(device), None, 1)
    some = [Source([*ids, 3], number=(n, 0), cap=30, **more) for n, ids in enumerate(encoded(8))]
    some[0], places = replace(some[0], prefix=[5, 6]), list(range(len(some)))
    n_places, longest = canonical_places(len(some), how.beam_size), len(more.get("listed", ())) or None
    members = [
        ModelSteps(model.to(device), n_places, how.beam_size, room_for_keys(model, 24), runtime, longest)
        for model in models
    ]
    model = EnsembleSteps(members) if len(members) > 1 else members[0]
    chooser = (Sampling if how.sampling else BeamSearch)(n_places, 30, how, device)
    for taking in (model, chooser):
        taking.admit(places, some)
    return model, chooser


DEVICES = pytest.mark.parametrize(
    "device",
    ["meta", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif("not torch.cuda.is_available()")])],
)


def step(model: Any, chooser: Any, n: int) -> None:
    for _ in range(n):
        assert chooser.advance(model.step(chooser.live.newest, chooser.live.parents)) == {}


@DEVICES
@EVERY
def test_no_step_between_two_looks_waits(how: dict[str, Any], device: str, strict: Callable[[], Any]) -> None:
    model, chooser = taken([transformer(config())], DecodeSettings(**how), device)
    with strict():
        step(model, chooser, 7)
    if device == "meta":
        with pytest.raises(NotImplementedError, match="no data"):  # the look
            step(model, chooser, 1)


MODELS: dict[str, list[dict[str, object]]] = {
    **{positions: [{"positions": positions}] for positions in ("learned", "rotary", "t5", "alibi", "transformer_xl")},
    "a window": [{"attention": {"decoder": "sparse"}, "sparse": {"window": 2}}],
    "blocks": [{"attention": {"decoder": "sparse"}, "sparse": {"pattern": "bigbird", "window": 2, "block": 3}}],
    "two": [{"norm_placement": "post", "norm": "rms"}, {"activation": "swiglu", "qk_norm": True}],
}


@DEVICES
@pytest.mark.parametrize("shapes", MODELS.values(), ids=MODELS)
def test_nor_with_other_models(shapes: list[dict[str, object]], device: str, strict: Callable[[], Any]) -> None:
    model, chooser = taken([transformer(config(model=shape)) for shape in shapes], DecodeSettings(beam_size=3), device)
    with strict():
        step(model, chooser, 7)


@DEVICES
def test_nor_with_a_shortlist(device: str, strict: Callable[[], Any]) -> None:
    model, chooser = taken([transformer(config())], DecodeSettings(), device, listed=np.arange(90))
    with strict():
        step(model, chooser, 7)
