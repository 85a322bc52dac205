"""From contents to the page: one HTML file that needs nothing else and may fetch nothing.

Text from data is escaped by Jinja. Beside that the page's own Content-Security-Policy allows the one script and the one
style sheet that are in it, by their hashes, and no request at all: if a sentence did become markup, it would be dead.
"""

import json
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment

from transformer_cli import __version__
from transformer_cli.report import curves
from transformer_cli.report.contents import Contents
from transformer_cli.wording import counted


def page(contents: Contents) -> str:
    """Return the HTML of a report; equal contents give equal text."""
    style, script = _part("page.css"), _part("page.js")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = _number
    return environment.from_string(_part("page.html")).render(
        report=contents,
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        tiles=list(_tiles(contents)),
        facts=list(_facts(contents.info)),
        places=_places(contents),
        most_heads=max((head.head for head in contents.heads), default=0),
        frame=curves,
        data={"maps": contents.maps, "charts": [_pointed(chart) for chart in contents.charts]},
        counted=counted,
        version=__version__,
    )


def _number(value: object, digits: int) -> str:
    """Return a number with so many digits; of what is none: nothing."""
    return f"{value:.{digits}f}" if curves.is_number(value) else ""


def _part(name: str) -> str:
    return files("transformer_cli.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _pointed(chart: curves.Chart) -> dict[str, Any]:
    """Return what the script needs to tell the values under the pointer."""
    lines = [
        {"name": line.name, "points": [[round(x), float(f"{y:.5g}")] for x, y in line.points]} for line in chart.lines
    ]
    return {"range": chart.x_range, "left": curves.LEFT, "right": curves.RIGHT, "lines": lines}


def _tiles(contents: Contents) -> Iterator[tuple[str, str, str]]:
    """Return what to see first: name, value and how to read it."""
    info, best = contents.info, contents.info.get("best") or {}
    total = info.get("total_steps")
    yield "steps", f"{info['step']:,}", f"{info['status']}" + (f", of {total:,}" if total else "")
    yield "parameters", curves.short(contents.parameters[-1][1]), "those that are shared counted once"
    if curves.is_number(best.get("bleu")):
        found = (record for record in contents.validations if record.get("step") == best["step"])
        decoding = next((f"; {record['decoding']}" for record in found if record.get("decoding")), "")
        yield "dev BLEU", f"{best['bleu']:.2f}", f"of the best model, step {best['step']:,}{decoding}"
    if curves.is_number(best.get("loss")):
        yield "dev loss", f"{best['loss']:.3f}", "nats per token, of the same model"
    if contents.scores:
        record = _leading(contents)
        yield str(record.get("metric", "score")), f"{record['score']:.2f}", _described(record, contents)


def _leading(contents: Contents) -> dict[str, Any]:
    """Return the newest BLEU of this model, the recipe's own search and test set, or what comes nearest to it.

    What was tried with other settings is no score of the recipe, even if it is the newest.
    """

    def nearness(record: dict[str, Any]) -> tuple[bool, ...]:
        own = record.get("decoding") == contents.decoding, record.get("model") == contents.model
        return *own, record.get("metric") == "BLEU", record.get("text") == "split test"

    return max(contents.scores, key=nearness)  # of equals the first, and that is the newest


def _described(record: dict[str, Any], contents: Contents) -> str:
    """Say of a score which text, which search and which weights it is of."""
    interval = f"± {record['interval']:.2f}, " if curves.is_number(record.get("interval")) else ""
    text = ", ".join(Path(part).name for part in str(record.get("text")).split(", "))
    to = f" → {record['to']}" if record.get("to") else ""
    other = "" if record.get("decoding") == contents.decoding else "not as the recipe searches: "
    return f"{interval}tfm eval of {text}{to}; {other}{record.get('decoding')}; {record.get('model')}"


def _facts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Return the entries of run.json, one a row, with dotted names."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _facts(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _places(contents: Contents) -> dict[str, dict[int, list[Any]]]:
    """Return the heads by place and layer."""
    places: dict[str, dict[int, list[Any]]] = {}
    for head in contents.heads:
        places.setdefault(head.place, {}).setdefault(head.layer, []).append(head)
    return places
