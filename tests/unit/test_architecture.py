"""The shape of the house: imports point down, names say something, starting is cheap."""

import ast
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_cli.wording import counted

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "transformer_cli"
FILES = sorted(PACKAGE.rglob("*.py"))

#: A part may import itself and whatever stands on a later line; parts on one line do not import each other.
LAYERS = [
    {"__main__"},
    {"cli"},
    {"arguments"},
    {"commands"},
    {"demos", "report"},
    {"experiment", "evaluation", "benchmark", "inspection"},
    {"training", "decoding"},
    {"export"},
    {"checkpoint"},
    {"data", "model"},
    {"schema"},
    {"recipe"},
    {"config", "runtime", "shipped"},
    {"errors"},
    {"wording"},
]
FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc", "builders", "constants"}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    """Parts of the package that a file imports at run time (not under TYPE_CHECKING)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    parts = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "transformer_cli":
            dotted = (node.module or "").split(".")[1:]
            parts |= {dotted[0]} if dotted else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            parts |= {n.name.split(".")[1] for n in node.names if n.name.startswith("transformer_cli.")}
    return {part for part in parts if part != "__version__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    if path.name == "__init__.py" and path.parent == PACKAGE:
        return  # the public function `load` imports what it returns
    part = part_of(path)
    depth = next(i for i, layer in enumerate(LAYERS) if part in layer)
    allowed = {part}.union(*LAYERS[depth + 1 :])
    assert imported_parts(path) <= allowed


def test_model_needs_nothing_but_torch_and_numpy() -> None:
    for path in PACKAGE.joinpath("model").rglob("*.py"):
        assert imported_parts(path) <= {"model"}, path


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert [path for path in FILES if path.stem in FORBIDDEN_NAMES] == []


def test_files_and_functions_stay_short() -> None:
    long_files = {p.name: n for p in FILES if (n := len(p.read_text(encoding="utf-8").splitlines())) > 300}
    assert long_files == {}
    functions = [
        (f"{path.name}:{node.name}", node.end_lineno - node.lineno + 1)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None
    ]
    assert [f for f in functions if f[1] > 50] == []


#: What messages count. A number in front of one goes through ``counted``: nobody likes to read "1 lines".
COUNTABLE = "lines|rows|columns|checkpoints|samples|errors|devices|cases"


def test_messages_count_their_nouns() -> None:
    found = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = itertools.pairwise(node.values if isinstance(node, ast.JoinedStr) else [])
            found += [
                f"{path.name}:{node.lineno}: {text.value}"
                for number, text in parts
                if isinstance(number, ast.FormattedValue)
                and isinstance(text, ast.Constant)
                and re.match(rf" ([a-z]+ )?({COUNTABLE})\b(?!/)", text.value)
            ]
    assert found == []
    assert [counted(n, "line") for n in (0, 1, 1000)] == ["0 lines", "1 line", "1,000 lines"]
    assert [counted(n, "process", "processes") for n in (1, 2)] == ["1 process", "2 processes"]


HEAVY = {"torch", "datasets", "sacrebleu", "matplotlib", "numpy", "ctranslate2", "jinja2", "transformer_cli.config"}
COMMANDS = [*("train", "translate", "eval", "score", "augment", "export", "bench", "check", "inspect")]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)], ids=" ".join
)
def test_help_imports_nothing_heavy_and_is_quick(arguments: list[str]) -> None:
    program = (
        "import sys, time, contextlib\n"
        "from transformer_cli.cli import main\n"
        f"with contextlib.suppress(SystemExit): main({arguments!r})\n"
        f"print('loaded:', sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "loaded: []" in done.stderr
    assert re.search(r"Usage|tfm \d", done.stdout)
