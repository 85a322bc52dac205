"""CTranslate2, which is not installed by default, and the types in which it stores weights."""

from typing import Any, Literal

from transformer_cli.errors import UserError

Quantization = Literal[
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16", "int8_bfloat16"
]


def ctranslate2() -> Any:
    """Import and return the package.

    Raises:
        UserError: it is not installed.
    """
    try:
        import ctranslate2
    except ModuleNotFoundError:
        hint = "pip install 'transformer-cli[ctranslate2]'"
        raise UserError("CTranslate2 is not installed", expected="the package ctranslate2", hint=hint) from None
    return ctranslate2
