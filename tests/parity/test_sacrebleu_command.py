"""Our scores are those of the sacrebleu command on the same files."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_cli.commands.eval.job import EvalRequest, as_json, run_eval

GERMAN = [
    "Der",
    "Hund",
    "läuft",
    "im",
    "Haus,",
    "dem",
    "Baum.",
    "„Nein“",
    "3,5",
    "km/h",
    "z.B.",
    "(sehr)",
    "don't",
    "&amp;",
]
CHINESE = [*"我们今天在学校学习中文，他喜欢吃苹果。！？", " ", "ABC", "12.5", "％"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path, request):
    """Two references and hypotheses with odd spaces, an empty line and, for one line, no newline at the end."""
    words, joint = (CHINESE, "") if request.param == "zh" else (GERMAN, " ")
    draw = random.Random(5)
    refs = [[draw.choice(words) for _ in range(draw.randint(1, 15))] for _ in range(60)]
    vary = lambda line: joint.join(draw.choice(words) if draw.random() < 0.3 else word for word in line)  # noqa: E731
    first, second, hyps = (joint.join(line) for line in refs), map(vary, refs), list(map(vary, refs))
    hyps[3], hyps[4], hyps[5] = "", "\u00a0", f"  {hyps[5]}\u3000"
    paths = [
        write(tmp_path / f"{name}.{request.param}", list(lines))
        for name, lines in (("ref", first), ("other", second), ("hyp", hyps))
    ]
    paths[2].write_bytes(paths[2].read_bytes()[:-1])
    return paths


def command(*arguments: str | Path) -> object:
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *map(str, arguments), "--format", "json", "-w", "2"],
        capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def own(paths, **settings) -> object:
    report = run_eval(EvalRequest(refs=tuple(paths[:-1]), hyp=paths[-1], **settings))
    ours = {"text", "lines", "system", "to", "decoding", "empty_hypotheses"}
    strip = lambda document: {key: value for key, value in document.items() if key not in ours}  # noqa: E731
    found = json.loads(as_json(report))
    return [strip(document) for document in found] if isinstance(found, list) else strip(found)


@pytest.mark.parametrize("corpus", ["de"], indirect=True)
def test_all_metrics_with_two_references_and_intervals(corpus):
    ref, other, hyp = corpus
    theirs = command(ref, other, "-i", hyp, "-m", "bleu", "chrf", "ter", "--confidence", "--confidence-n", "50")
    assert own(corpus, metrics=("ter", "bleu", "chrf"), n_bootstrap=50) == theirs


@pytest.mark.parametrize("corpus", ["de"], indirect=True)
def test_lowercase_and_another_tokenizer(corpus):
    ref, _, hyp = corpus
    theirs = command(ref, "-i", hyp, "-m", "bleu", "chrf", "-lc", "--chrf-lowercase", "-tok", "intl")
    assert own([ref, hyp], metrics=("bleu", "chrf"), lowercase=True, tokenize="intl", n_bootstrap=0) == theirs


@pytest.mark.parametrize("corpus", ["zh"], indirect=True)
def test_chinese(corpus):
    ref, _, hyp = corpus
    theirs = command(ref, "-i", hyp, "-m", "bleu", "ter", "-tok", "zh", "--ter-asian-support", "--ter-normalized")
    assert own([ref, hyp], metrics=("bleu", "ter"), n_bootstrap=0) == theirs  # the language is told by the ending
