"""Which demos there are, in the order in which one reads them; known without loading torch.

Each has a module of its name here, whose ``demonstrate`` takes a ``Wish`` and returns a ``DemoReport``.
"""

DEMOS = {
    "scaling": "why scores are divided by the square root of d_k",
    "masks": "what masks hide, and what wrong ones do: a good loss and a useless translation",
    "order": "without positions attention cannot tell 我打你 from 你打我",
    "norm": "Pre- and Post-Norm at 2 to 24 layers: gradients, and a short training",
    "heads": "what the heads of a trained run do",
    "cost": "how time and memory of attention grow with the length",
    "warmup": "a training with and without warm-up",
}
