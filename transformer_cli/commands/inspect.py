"""``tfm inspect``: what a trained model looks at, in one sentence or over many."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from transformer_cli.commands.attention_picture import Row, check_picture, label_step, rows_of, write_picture
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.commands.files.output_file import output_bytes, refuse_unwritable
from transformer_cli.commands.shared.notes import Note, note_on_stderr, written
from transformer_cli.commands.shared.run_choice import chosen_run
from transformer_cli.commands.terminal_map import terminal_map
from transformer_cli.errors import UserError
from transformer_cli.inspection.heads import LEGEND, Head, doubles
from transformer_cli.inspection.inspector import ROWS, Inspector, SentenceMaps

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class InspectRequest:
    """What the command line asked for."""

    text: str | None
    target: str | None
    run: Path | None
    to: str | None
    picture: Path | None
    npz: Path | None
    place: str  # encoder | decoder | cross
    layer: int | None
    head: int | None
    heads: bool
    device: str
    as_json: bool
    quiet: bool


def run_inspect(request: InspectRequest) -> None:
    """Look into a run and print what is seen.

    Raises:
        UserError: the request makes no sense, there is no run, or an output cannot be written.
    """
    _refuse_senseless(request)
    note = note_on_stderr(request.quiet)
    if request.picture is not None:
        check_picture(request.picture)
    if request.npz is not None:
        _check_npz(request.npz)
    inspector = Inspector.from_run(chosen_run(request.run, note), request.device, request.to)
    if "encoder" not in inspector.places:
        note("the encoder's attention is left out: linformer's keys are mixtures of all tokens")
    if request.heads:
        print_heads(inspector.heads(note), request.as_json)
        return
    assert request.text is not None
    maps = inspector.look(request.text, request.target)
    chosen, name = _chosen(maps, request)
    _write_files(maps, request, note)
    if request.as_json:
        print(json_text(_document(maps)))
        return
    print(f"{maps.translation}\n\n{name}: rows ({ROWS[request.place]}) look at columns")
    print("░ from a weight of 0.2 on, ▒ 0.4, ▓ 0.6, █ 0.8; ▁ begins a word\n")
    print("\n".join(terminal_map(chosen, *maps.sides(request.place), Console().width)))


def print_heads(heads: Sequence[Head], as_json: bool) -> None:
    """Print a table of heads, and which of them do the same; or one JSON document."""
    if as_json:
        print(json_text({"heads": [asdict(head) for head in heads]}, indent=1))
        return
    row = "{:8}{:>5}{:>5}  {:18}{:>8}{:>9}{:>16}".format
    print(row("place", "layer", "head", "type", "entropy", "distance", "nearest head"))
    for head in heads:
        near = "-" if head.nearest is None else f"{head.nearest} ({head.nearest_distance:.2f} away)"
        numbers = f"{head.entropy:.2f}", f"{head.distance:.1f}"
        print(row(head.place, head.layer, head.head, head.kind, *numbers, near))
    for head, other in doubles(heads):
        print(f"{head.place} layer {head.layer}: head {head.head} does what head {other} does")
    print(
        "", *LEGEND, "nearest   the head of the layer whose weights differ least, in total variation, 0 to 1", sep="\n"
    )


def _refuse_senseless(request: InspectRequest) -> None:
    if request.heads:
        given: dict[str, object] = {
            "text": request.text,
            "--target": request.target,
            "-o": request.picture,
            "--npz": request.npz,
        }
        given |= {"--layer": request.layer, "--head": request.head}
        if names := [name for name, value in given.items() if value is not None]:
            raise UserError(f"--heads looks at the dev set, and takes no {names[0]}")
    elif request.text is None:
        raise UserError("no text was given", expected='tfm inspect "a sentence", or --heads')


def _check_npz(path: Path) -> None:
    if path.suffix != ".npz":
        raise UserError("--npz writes numpy's format", got=path.name, expected="a name that ends in .npz")
    refuse_unwritable(path)


def _chosen(maps: SentenceMaps, request: InspectRequest) -> tuple["NDArray[np.float32]", str]:
    """Return the map for the terminal, and its name: of one head, or the mean of a layer's heads."""
    if request.place not in maps.weights:
        raise UserError("linformer has no map of tokens", got=f"--place {request.place}", expected="decoder or cross")
    layers = maps.weights[request.place]
    number = _layer_number(maps, request)
    if number > len(layers):
        raise UserError("there is no such layer", got=number, expected=f"1 to {len(layers)}")
    heads = layers[number - 1]
    if request.head is None:
        return heads.mean(0), f"{request.place} attention, layer {number} of {len(layers)}, mean of {len(heads)} heads"
    if request.head > len(heads):
        raise UserError("there is no such head", got=request.head, expected=f"1 to {len(heads)}")
    return heads[request.head - 1], f"{request.place} attention, layer {number} of {len(layers)}, head {request.head}"


def _pictured(maps: SentenceMaps, request: InspectRequest) -> list[Row]:
    """Return what the picture shows: everything, or, if a layer or head was asked for, only that of the place."""
    rows = rows_of(maps)
    if request.layer is None and request.head is None:
        return rows
    number = _layer_number(maps, request)
    (row,) = (row for row in rows if (row.place, row.layer) == (request.place, number))
    return [row if request.head is None else row._replace(maps={request.head: row.maps[request.head]})]


def _layer_number(maps: SentenceMaps, request: InspectRequest) -> int:
    # The last layer but one: where cross-attention resembles an alignment most (Garg et al. 2019).
    return max(1, len(maps.weights[request.place]) - 1) if request.layer is None else request.layer


def _write_files(maps: SentenceMaps, request: InspectRequest, note: Note) -> None:
    if request.picture is not None:
        rows = _pictured(maps, request)
        if (step := label_step(maps, rows)) > 1:
            note(f"the picture labels one of {step} tokens; with --layer or --head it draws fewer maps, and larger")
        missing = write_picture(maps, rows, request.picture)
        note(written(request.picture))
        if missing:
            from matplotlib import get_cachedir

            note(f"no font of this machine has {''.join(missing)}: drawn as numbers; Noto Sans CJK has most letters")
            note(f"a font that was just installed is found when the lists in {get_cachedir()} are deleted")
    if request.npz is not None:
        pieces = {"src_pieces": maps.src_pieces, "tgt_inputs": maps.tgt_inputs, "tgt_pieces": maps.tgt_pieces}
        arrays = {f"{place}.{n}": layer for place, layers in maps.weights.items() for n, layer in enumerate(layers, 1)}
        texts = {name: np.array(side) for name, side in pieces.items()}
        with output_bytes(request.npz) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays, **texts)
        note(written(request.npz, ", ".join([*arrays, *texts])))


def _document(maps: SentenceMaps) -> dict[str, object]:
    names = {"source": maps.source, "translation": maps.translation}
    names |= {"src_pieces": maps.src_pieces, "tgt_inputs": maps.tgt_inputs, "tgt_pieces": maps.tgt_pieces}  # type: ignore[dict-item]
    rounded = {
        place: [np.round(layer.astype(float), 4).tolist() for layer in layers] for place, layers in maps.weights.items()
    }
    return {**names, "weights": rounded}
