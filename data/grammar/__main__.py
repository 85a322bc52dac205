"""`python -m data.grammar` rewrites `data/phrasebook` and prints its counts."""

from .generate import summary, write

print(summary(write()))
