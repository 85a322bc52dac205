"""``tfm translate`` without a model, in a process of its own: prints by how many bytes the stream code has grown it.

python stub_translation.py LINES FOLDER
"""

import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from transformer_cli.commands.translate import job as command
from transformer_cli.config import DecodeConfig
from transformer_cli.decoding.translation import Hypothesis, Translation


class StubTranslator:
    """Answers at once, with something to be noted of every line."""

    config = SimpleNamespace(decode=DecodeConfig(), data=SimpleNamespace(src_lang="en", max_length=100))
    tokenizer, tgt_lang = SimpleNamespace(sha256="0"), "de"
    wishes = SimpleNamespace(prefix_ids=lambda *_: [])

    def close(self) -> None:
        """Nothing is to be given back."""

    @classmethod
    def from_run(cls, *_: object, **__: object) -> "StubTranslator":
        return cls()

    def translate_window(self, lines: Sequence[str], *_: object) -> list[Translation]:
        return [Translation(line, [Hypothesis(line.upper(), 0.0, [line], capped=True)], pieces=2) for line in lines]


def peak() -> int:
    """Return the most memory that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(n_lines: int, folder: Path) -> None:
    with (folder / "in").open("w", encoding="utf-8") as file:
        file.writelines(f"line {number} of many\n" for number in range(n_lines))
    (folder / "model.safetensors").touch()
    command.Translator = StubTranslator
    before = peak()
    command.run_translate(
        command.TranslateRequest(
            texts=(),
            runs=(folder,),
            input_path=str(folder / "in"),
            output_path=str(folder / "out"),
            search={},
            n_best=1,
            output_format="text",
            device="cpu",
            quiet=False,
        )
    )
    print(peak() - before, peak())


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
