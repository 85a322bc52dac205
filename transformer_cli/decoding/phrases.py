"""What the translations of a job must not say, as text."""

from dataclasses import dataclass

from transformer_cli.decoding.forbidden import ForbiddenPhrases


@dataclass(frozen=True)
class Phrases:
    """What must not be said."""

    forbidden: ForbiddenPhrases | None = None

    def said(self, text: str) -> list[str]:
        """Return the forbidden phrases in a text."""
        return [] if self.forbidden is None else [phrase for phrase in self.forbidden.phrases if phrase in text]


ANYTHING = Phrases()
