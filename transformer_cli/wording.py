"""Numbers and their nouns in messages: ``1 line``, ``2,000 lines``."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return how many there are of a thing.

    Args:
        number: how many.
        noun: one of them.
        plural: several of them; None: with an ``s``.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
