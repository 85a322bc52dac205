"""Train, run, score and measure a Transformer translator.

>>> import transformer_cli
>>> translator = transformer_cli.load("runs/my-run")
>>> translator.translate(["Where is the station?"])
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformer_cli.decoding.translation import Engine
    from transformer_cli.decoding.translator import Translator

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def load(run: str, device: str = "auto", to: str | None = None, engine: "Engine" = "torch") -> "Translator":
    """Load a trained run for translation.

    Args:
        run: a run folder, or one of its ``checkpoints/step-N`` folders.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        to: language to translate into, if the run knows several; None: its main one.
        engine: ``torch``, or ``ctranslate2`` for an exported folder, or a run with an export inside or beside it.

    Raises:
        RunError: there is no usable model at that place.
        UserError: there is no such device or language, or the model cannot be computed there.
    """
    from transformer_cli.decoding.translator import Translator  # torch is imported only when it is used

    return Translator.from_run(run, device=device, to=to, engine=engine)
