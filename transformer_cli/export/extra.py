"""CTranslate2, which is not installed by default."""

from typing import Any

from transformer_cli.errors import UserError


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
