"""Text on the command line may start with "-": what looks like an option but is none is taken as text."""

import typer
from typer.core import TyperCommand


class TextCommand(TyperCommand):
    """A command whose arguments are sentences.

    ``tfm translate "-5 degrees"`` means the text. A token that starts with one dash is an option only if its letter
    is a known one and it holds no space; ``--word`` is always an option, so that a misspelled one is still refused.
    After ``--`` everything is text.
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Put options first and texts behind a ``--``, each in the order given, then parse as usual."""
        cut = args.index("--") if "--" in args else len(args)
        options: list[str] = []
        texts: list[str] = []
        for before, token in zip(["", *args], args[:cut], strict=False):
            is_value = bool(options) and before == options[-1] and self._takes_value(before)
            (options if is_value or self._is_option(token) else texts).append(token)
        return super().parse_args(ctx, [*options, "--", *texts, *args[cut + 1 :]])

    def _is_option(self, token: str) -> bool:
        letters = {"h", *(name[1] for parameter in self.params for name in parameter.opts if name[:2] != "--")}
        if token.startswith("--"):
            return " " not in token.partition("=")[0]
        return len(token) > 1 and token[0] == "-" and token[1] in letters and " " not in token

    def _takes_value(self, token: str) -> bool:
        return any(token in parameter.opts and not getattr(parameter, "is_flag", False) for parameter in self.params)
