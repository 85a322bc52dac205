"""``python -m transformer_cli`` is ``tfm``."""

from transformer_cli.cli import main

main()
