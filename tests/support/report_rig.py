"""A page as a reader without a browser sees it, and contents that try to break out of it."""

from html.parser import HTMLParser

import numpy as np

from transformer_cli.evaluation import Bucket, Line
from transformer_cli.inspection.heads import Head
from transformer_cli.inspection.inspector import SentenceMaps
from transformer_cli.report.contents import Contents
from transformer_cli.report.curves import training_charts
from transformer_cli.report.maps import packed
from transformer_cli.report.translations import Translations

VOID = {"meta", "link", "br", "img", "input", "hr", "col", "base", "source"}
FETCHING = {
    "src",
    "href",
    "srcset",
    "action",
    "formaction",
    "data",
    "poster",
    "background",
    "xlink:href",
    "ping",
    "style",
}
SECTIONS = ["curves", "scores", "lengths", "sentences", "attention", "heads", "parameters", "configuration", "origin"]
EVIL = """<script>window.stolen = 1</script> & <img src=x onerror="window.stolen = 2"> "'> </script> {{ 7 * 7 }} 你好"""


class Seen(HTMLParser):
    """Elements, attributes and text of a page whose tags must all be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.sections: dict[str, str] = {}
        self._section = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self._section = dict(attrs)["id"] or ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "section":
            self._section = ""

    def handle_data(self, data: str) -> None:
        if self._section:
            self.sections[self._section] = self.sections.get(self._section, "") + data

    def named(self, name: str) -> list[str]:
        """Return the values of an attribute, wherever it stands."""
        return [value for _, attribute, value in self.attributes if attribute == name]

    def fetched(self) -> list[str]:
        """Return what a browser would ask for."""
        values = [value for _, name, value in self.attributes if name in FETCHING]
        return [value for value in values if not value.startswith("#") and value != "data:,"]


def hostile() -> Contents:
    """Return contents in which every text from outside is markup."""
    line = Line(1, 12.5, "sig", EVIL, [EVIL], EVIL)
    weights = {place: [np.full((2, 3, 3), 1 / 3, np.float32)] for place in ("encoder", "decoder", "cross")}
    pieces = [EVIL, "</script>", "</s>"]
    head = Head("cross", 1, 1, "alignment-like", *[0.5] * 8, nearest=2, nearest_distance=0.01)
    records = [{"kind": "train", "step": step, "loss": 5 / step, "lr": 1e-3, "grad_norm": 1.0} for step in (1, 2, 3)]
    score = {"metric": EVIL, "score": 1.0, "text": EVIL, "decoding": EVIL, "signature": EVIL, "model": EVIL, "to": EVIL}
    return Contents(
        name=EVIL,
        model=EVIL,
        langs=("en", '"><script>'),
        info={"step": 3, "status": EVIL, "created": "2026-01-01T00", "recipe": EVIL, "best": None, EVIL: EVIL},
        recipe=EVIL,
        parameters=[("total", 1234)],
        charts=training_charts(records),
        validations=[{"kind": "validation", "step": 3, "loss": 1.0, "decoding": EVIL, "signature": EVIL}],
        scores=[score],
        decoding=EVIL,
        translations=Translations(1, EVIL, [Bucket("0-5", EVIL, 1, 12.5, "sig")], [line]),
        maps=[packed(SentenceMaps(EVIL, EVIL, pieces, pieces, pieces, weights), EVIL)],
        heads=[head],
        doubles=[(head, 2)],
        missing={"curves": EVIL},
    )
