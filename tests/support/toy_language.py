"""A language of a few words, and the settings of a model that learns it in seconds."""

import random

NUMBERS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs"}
THINGS = {"cats": "Katzen", "dogs": "Hunde", "trees": "Bäume", "houses": "Häuser", "books": "Bücher"}
DEEDS = {"sleep": "schlafen", "fall": "fallen", "wait": "warten"}


def toy_pairs(count: int) -> list[tuple[str, str]]:
    draw = random.Random(7)
    rows = []
    for _ in range(count):
        number, thing, deed = (draw.choice(list(words.items())) for words in (NUMBERS, THINGS, DEEDS))
        rows.append((f"{number[0]} {thing[0]} {deed[0]}.", f"{number[1]} {thing[1]} {deed[1]}."))
    return rows


#: A model that trains in seconds.
TINY = [
    "-s", "tokenizer.vocab_size=320", "-s", "model.d_model=32", "-s", "model.n_heads=2", "-s", "model.d_ff=64",
    "-s", "model.encoder_layers=1", "-s", "model.decoder_layers=1", "-s", "model.dropout=0.1", "-s", "train.amp=off",
    "-s", "train.batch_tokens=256", "-s", "train.lr=0.01", "-s", "train.warmup_steps=10", "-s", "train.max_minutes=null",
]  # fmt: skip
