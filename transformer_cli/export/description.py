"""What an exported folder says of itself: ``export.json`` for programs, ``README.txt`` for people.

Together they let somebody who has only the folder, CTranslate2 and SentencePiece translate as the run did.
"""

from typing import Any

from transformer_cli import __version__
from transformer_cli.config import Config
from transformer_cli.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, tag_piece
from transformer_cli.export.folder import FORMAT, INSIDE

_README = """\
A translation model {src} -> {targets}, exported by transformer-cli {version} for CTranslate2 ({quantization}).

A line is cut into pieces by SentencePiece{models}. {tag}The source ends with </s>; the translation starts with <s>,
which CTranslate2 adds, and ends with </s>. <unk>, <pad> and <s> must not be chosen. At most {positions} pieces fit,
</s> and tag included; training saw at most {longest}. All of this, the recipe and how this folder was checked against
the run it came from is in export.json.

In Python, with `pip install ctranslate2 sentencepiece`, in this folder:

    import ctranslate2
    import sentencepiece

    source = sentencepiece.SentencePieceProcessor("{src_model}")
    target = sentencepiece.SentencePieceProcessor("{tgt_model}")
    translator = ctranslate2.Translator(".")


    def translate(line):
        pieces = [{before}*source.encode(line, out_type=str), "</s>"]
        result = translator.translate_batch(
            [pieces],
            beam_size={beam_size},
            length_penalty={length_penalty},
            no_repeat_ngram_size={no_repeat_ngram},
            disable_unk=True,
            suppress_sequences=[["<pad>"], ["<s>"]],
            max_input_length=0,
            max_decoding_length=min(int({ratio} * len(pieces)) + 9, {longest_translation}),
            min_decoding_length={min_length},
        )[0]
        return target.decode(result.hypotheses[0])


    print(translate("..."))

With transformer-cli: tfm translate --engine ctranslate2 --run THIS_FOLDER
"""


def description(
    config: Config, tokenizer: Tokenizer, quantization: str, positions: int, origin: dict[str, str]
) -> dict[str, Any]:
    """Return the content of ``export.json``.

    Args:
        config: the run's recipe, kept whole.
        tokenizer: the run's.
        quantization: in which type the weights are stored.
        positions: most tokens of a source or translation.
        origin: name of the run, hash of its weights and of the model that was made of them.
    """
    data = config.data
    special = dict(zip(("pad", "unk", "bos", "eos"), tokenizer.tgt_pieces([PAD, UNK, BOS, EOS]), strict=True))
    return {
        "format": FORMAT,
        "engine": INSIDE,
        "quantization": quantization,
        "positions": positions,
        **origin,
        "made_by": f"transformer-cli {__version__}",
        "languages": {
            "source": data.src_lang,
            "targets": data.targets,
            "tags": {language: tag_piece(language) for language in data.tagged_targets},
        },
        "tokens": {**special, "tokenizer": _models(tokenizer), "source": "[tag] pieces </s>", "target": "pieces </s>"},
        "decode": config.decode.model_dump(mode="json"),
        "recipe": config.model_dump(mode="json"),
    }


def readme(config: Config, tokenizer: Tokenizer, quantization: str, positions: int) -> str:
    """Return the text of ``README.txt``."""
    data, decode, models = config.data, config.decode, _models(tokenizer)
    tags = {language: tag_piece(language) for language in data.tagged_targets}
    named = ", ".join(f"{tag} for {language}" for language, tag in tags.items())
    return _README.format(
        src=data.src_lang,
        longest_translation=positions - 1,
        targets=", ".join(data.targets),
        version=__version__,
        quantization=quantization,
        models="" if len(models) == 1 else ", each side by its own model",
        tag=f"The first token of the source asks for the language: {named}. " if tags else "",
        positions=positions,
        longest=data.max_length,
        src_model=models[0],
        tgt_model=models[-1],
        before=f'"{tags[data.tgt_lang]}", ' if tags else "",
        beam_size=decode.beam_size,
        length_penalty=f"{decode.length_penalty:g}",
        no_repeat_ngram=decode.no_repeat_ngram,
        ratio=f"{decode.max_length_ratio:g}",
        min_length=decode.min_length,
    )


def _models(tokenizer: Tokenizer) -> list[str]:
    return ["tokenizer.model"] if tokenizer.joint else ["tokenizer.src.model", "tokenizer.tgt.model"]
