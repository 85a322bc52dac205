"""Which translations of a line's pieces belong together: those of one rank, or those of one draw.

A search's best translations of the pieces make the best one of the line. Samples are another matter: joined by rank,
the most probable of each piece would meet, which nobody has drawn. So the n-th draws are joined, each a fair sample of
the whole line, and put in order afterwards.
"""

import math
from collections.abc import Iterable, Sequence

from transformer_cli.decoding.pool import Finished

NOTHING = Finished(-math.inf, [], capped=False)  # weights that are not numbers leave nothing to choose from


def by_rank(pieces: Sequence[Sequence[Finished]]) -> Iterable[list[Finished]]:
    """Yield the best of all pieces, the second best, and so on; a piece that has no more stays at its last one."""
    found = [piece or [NOTHING] for piece in pieces]
    return ([piece[min(rank, len(piece) - 1)] for piece in found] for rank in range(max(map(len, found))))


def by_draw(pieces: Sequence[Sequence[Finished]]) -> Iterable[list[Finished]]:
    """Return the samples of the whole line, those of the highest mean score first; of equals the earlier first."""
    of_draw = [{sample.draw: sample for sample in piece} for piece in pieces]
    draws = sorted({draw for piece in of_draw for draw in piece}) or [0]
    whole = [[piece.get(draw, NOTHING) for piece in of_draw] for draw in draws]
    return sorted(whole, key=lambda samples: -sum(sample.score for sample in samples))
