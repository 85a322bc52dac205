"""``tfm init``: a commented recipe for the user's own sentence pairs."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args, get_origin

from transformer_cli.commands.files.output_file import output_file, refuse_replacing
from transformer_cli.commands.shared.notes import written
from transformer_cli.config import Config, DataConfig, Section, Source
from transformer_cli.config.combinations import REFUSED
from transformer_cli.data.pairs import Strict
from transformer_cli.data.readers import pairs_of_files, source_files
from transformer_cli.errors import ConfigError, DataError, UserError
from transformer_cli.wording import counted

_KEYS = ("d_model", "n_heads", "d_ff", "encoder_layers", "decoder_layers", "dropout", "positions")
_ADAMW: dict[str, object] = {"optimizer": "adamw", "schedule": "cosine"}
_MUON: dict[str, object] = {"optimizer": "muon", "lr": 0.006, "accumulate": 2, "schedule": "linear"}
#: Pairs at least, warm-up steps, vocabulary, the model by _KEYS, the rest of training. More text carries a larger
#: vocabulary and more parameters; the third row is the shape that the literature uses for 29,000 pairs (Wu et al.
#: 2021). With it Muon was 1 to 4 BLEU better than AdamW on three data sets, and rotary positions were 1 to 3 better
#: than sinusoidal ones on five; with the second row both together were 2 better on 5,000 pairs (docs/results.md).
#: With the other rows neither was tried.
_SIZES = [
    (0, 20, 2000, (128, 4, 256, 3, 3, 0.2, "sinusoidal"), _ADAMW),
    (2_000, 100, 2000, (128, 4, 256, 3, 3, 0.2, "rotary"), _MUON),
    (10_000, 100, 4000, (128, 4, 256, 4, 4, 0.2, "rotary"), _MUON),
    (100_000, 1000, 8000, (256, 4, 1024, 4, 4, 0.1, "sinusoidal"), _ADAMW),
    (500_000, 4000, 16000, (512, 8, 2048, 6, 6, 0.1, "sinusoidal"), _ADAMW),
]
_FEW = 5_000

#: Choices that are refused whatever the other keys are, such as ``attention.cross: sparse``.
_NEVER = {row.names for row in REFUSED}

#: Endings that look like the code of a language.
_NO_LANGUAGES = {"txt", "src", "tgt", "ref", "hyp", "tok", "bpe", "raw", "tsv", "csv"}


def write_recipe(
    files: Mapping[str, str], languages: tuple[str | None, str | None], output: Path, overwrite: bool
) -> str:
    """Write the recipe and return what to do next.

    Args:
        files: ``src`` and ``tgt``, or ``tsv``, or ``jsonl``: what ``data.train`` gets.
        languages: codes of source and target; ``None``: the ending of its text file.
        output: the recipe.
        overwrite: whether it may be there already.

    Raises:
        DataError: a file is missing, or does not hold pairs.
        ConfigError: a language is no code or cannot be told from the file's ending, or ``output`` exists.
        UserError: the recipe would replace one of the files, or has no name of a file.
    """
    if str(output) == "-":
        raise UserError("a recipe is a file, and goes not to stdout", hint="give --output a file name")
    if output.exists() and not overwrite:
        raise ConfigError("exists already", where=str(output), hint="choose another --output, or give --overwrite")
    src_lang, tgt_lang = (
        code or _language(files.get(side), f"--{side}-lang")
        for side, code in zip(("src", "tgt"), languages, strict=True)
    )
    data = {"src_lang": src_lang, "tgt_lang": tgt_lang, "train": dict(files)}
    source, checked = Source.model_validate(files), DataConfig.model_validate(data)
    checked.refuse_odd_languages()
    read = source_files(source)
    refuse_replacing(str(output), read)
    pairs = _count_pairs(source, checked, read)
    with output_file(output) as file:
        file.write(_commented(_recipe(data, pairs), pairs))
    command = f"tfm train --config {shlex.quote(str(output))}"
    few = "" if pairs >= _FEW else f"; so few pairs teach little but themselves: a translator needs {_FEW:,} and more"
    told = written(output, f"a recipe for {counted(pairs, 'pair')}{few}")
    return f"{told}; next: {command} --dry-run, then without --dry-run"


def _count_pairs(source: Source, data: DataConfig, read: Sequence[Path]) -> int:
    if source.kind == "text" and read[0].samefile(read[1]):
        raise DataError("source and target are the same file", got=str(read[0]))
    full = [bool(src.strip() and tgt.strip()) for src, tgt in pairs_of_files(source, data, Strict())]
    if not any(full):
        raise DataError("there is no pair with text on both sides", got=f"{read[0]}: {counted(len(full), 'line')}")
    return sum(full)


def _language(file: str | None, option: str) -> str:
    if file is None:
        raise ConfigError("which languages are in the file is not known", hint=f"give them, e.g. {option} en")
    suffix = Path(file.removesuffix(".gz")).suffix[1:]
    if not (2 <= len(suffix) <= 3 and suffix.isalpha()) or suffix in _NO_LANGUAGES:
        raise ConfigError(f"cannot tell the language of {file} from its ending", hint=f"give it, e.g. {option} en")
    return suffix


def _recipe(data: Mapping[str, object], pairs: int) -> Config:
    _, warmup_steps, vocab_size, shape, rest = next(row for row in reversed(_SIZES) if pairs >= row[0])
    limits = {"max_minutes": 30, "max_epochs": 40}
    return Config.model_validate(
        {
            "data": data,
            "tokenizer": {"vocab_size": vocab_size},
            "model": dict(zip(_KEYS, shape, strict=True)),
            "train": {**limits, **rest, "warmup_steps": warmup_steps},
        }
    )


def _commented(config: Config, pairs: int) -> str:
    head = (
        f"# Made for {counted(pairs, 'pair')}. Every key stands here with its meaning; delete what you do not change.\n"
    )
    return head + "".join(_section(name, getattr(config, name), 0) for name in Config.model_fields)


def _section(name: str, section: Section, depth: int) -> str:
    lines = [f"\n{'  ' * depth}{name}:\n" if depth == 0 else f"{'  ' * depth}{name}:\n"]
    for key, field in type(section).model_fields.items():
        value = getattr(section, key)
        if isinstance(value, Section):
            lines.append(_section(key, value, depth + 1))
        elif value is not None or not isinstance(section, Source):
            literals = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
            choices = [choice for choice in literals if f"{name}.{key}: {choice}" not in _NEVER]
            meaning = ": ".join([" | ".join(choices)] * bool(choices) + [str(field.description)])
            lines.append(
                f"{'  ' * (depth + 1)}{key}: {json.dumps(value, ensure_ascii=False)}".ljust(34) + f"  # {meaning}\n"
            )
    return "".join(lines)
