"""The READMEs say what is there."""

import re
from pathlib import Path

from transformer_cli.shipped import shipped_recipes

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
TREE = (ROOT / "docs" / "tree.md").read_text(encoding="utf-8")


def tree_of(page: str) -> set[str]:
    """Return the files and folders that a page's tree shows, as paths; folders end with a slash."""
    block = re.search(r"```text\ntransformer_cli/\n(.*?)```", page, re.DOTALL)
    assert block is not None
    folders, found = [], set()
    for line in block[1].splitlines():
        indent, name = re.match(r"( *)(\S+)", line).groups()
        del folders[len(indent) // 2 - 1 :]
        found.add("".join(folders) + name)
        if name.endswith("/"):
            folders.append(name)
    return found


def test_the_tree_is_the_real_one() -> None:
    package = ROOT / "transformer_cli"
    files = [path.relative_to(package) for path in package.rglob("*.py") if "_shipped" not in path.parts]
    folders = {f"{path.parent}/" for path in files} - {"./"}
    assert tree_of(TREE) == folders | {str(path) for path in files if path.name != "__init__.py"}
    assert tree_of(README) == folders


def test_every_recipe_is_in_both_readmes() -> None:
    assert [name for name in shipped_recipes() if name not in README or name not in CHINESE] == []


def test_both_readmes_show_the_same_commands() -> None:
    def commands(text: str) -> list[str]:
        blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        return [re.sub(r"\s*#.*", "", line) for block in blocks for line in block.splitlines()]

    assert commands(README) == commands(CHINESE)


def test_both_readmes_show_the_same_figures_and_names() -> None:
    def told(text: str) -> set[str]:
        text = re.sub(r"```text\ntransformer_cli/\n.*?```", "", text, flags=re.DOTALL)  # one tree is enough
        return set(re.findall(r"`-[^`\s]+|\*\*[\d.]+\*\*|\b[\w-]+\.(?:yaml|md|jsonl?|safetensors)\b", text))

    assert told(README) - told(CHINESE) <= {"zh-CN.md"}  # the link to the other one
    assert re.findall(r"```text\n(\$.*?)```", README, re.DOTALL) == re.findall(r"```text\n(.*?)```", CHINESE, re.DOTALL)


def test_links_point_to_files_that_exist() -> None:
    for text in (README, CHINESE):
        targets = re.findall(r"\]\((?!http)([^)#]+)\)", text)
        assert [target for target in targets if not (ROOT / target).exists()] == []
