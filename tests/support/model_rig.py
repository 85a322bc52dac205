"""Small models and made-up sentences for every test of the model."""

import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.model.transformer import Transformer

VOCAB = 17
TINY = {"d_model": 16, "n_heads": 2, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}


def tiny_model(*, seed: int = 0, dtype: torch.dtype = torch.float64, **settings: object) -> Transformer:
    """A model in evaluation mode whose biases and norms are not at their start values, so that every parameter counts."""
    torch.manual_seed(seed)
    model = Transformer(ModelConfig.model_validate(TINY | settings), VOCAB, VOCAB, max_length=64).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.to(dtype)


def sentences(rows: int, length: int, *, seed: int = 0) -> Tensor:
    """Random ids ``[rows, length]`` without padding and special tokens."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, VOCAB, (rows, length), generator=generator)
