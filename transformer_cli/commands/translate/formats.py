"""How the translations of a line are written: as text, tab-separated values or JSON."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from transformer_cli.commands.files.json_text import json_text
from transformer_cli.decoding.translation import Translation

#: From a translation, the number of its line from 0, n-best, and the fields that its line brought along.
Render = Callable[[Translation, int, int, Mapping[str, Any]], str]

#: The fields of a translation in JSON, in order; no input may bring along one of these names.
FIELDS: dict[str, Callable[[Translation, int], object]] = {
    "sentence_id": lambda translation, number: number,
    "source": lambda translation, number: translation.source,
    "translation": lambda translation, number: translation.text,
    "score": lambda translation, number: translation.hypotheses[0].score,
    "tokens": lambda translation, number: translation.hypotheses[0].tokens,
    "token_logprobs": lambda translation, number: translation.hypotheses[0].token_logprobs,
    "end_logprobs": lambda translation, number: translation.hypotheses[0].end_logprobs,
    "alignment": lambda translation, number: translation.hypotheses[0].alignment,
    "confidence": lambda translation, number: translation.confidence,
    "translations": lambda translation, number: [asdict(hypothesis) for hypothesis in translation.hypotheses],
}


def document(translation: Translation, number: int, fields: Mapping[str, Any]) -> dict[str, object]:
    """Return a translation as a JSON object: our fields, then those that its line brought along."""
    return {name: value(translation, number) for name, value in FIELDS.items()} | dict(fields)


def _text(translation: Translation, number: int, n_best: int, fields: Mapping[str, Any]) -> str:
    """One line; with n-best, n lines in a row: always as many as asked for, so that lines stay countable."""
    texts = [hypothesis.text for hypothesis in translation.hypotheses]
    return "".join(f"{text}\n" for text in (texts + [""] * n_best)[:n_best])


def _tsv(translation: Translation, number: int, n_best: int, fields: Mapping[str, Any]) -> str:
    """One line per hypothesis: sentence number from 0, rank from 1, score, translation."""
    rows = enumerate(translation.hypotheses, start=1)
    return "".join(f"{number}\t{rank}\t{h.score:.4f}\t{_one_cell(h.text)}\n" for rank, h in rows)


def _jsonl(translation: Translation, number: int, n_best: int, fields: Mapping[str, Any]) -> str:
    return json_text(document(translation, number, fields)) + "\n"


def _one_cell(text: str) -> str:
    return text.replace("\t", " ")


RENDER: dict[str, Render] = {"text": _text, "tsv": _tsv, "jsonl": _jsonl}
