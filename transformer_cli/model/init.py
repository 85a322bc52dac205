"""How every parameter starts: the one place.

Linear layers: Xavier uniform (Glorot & Bengio 2010), which keeps the variance of activations and of gradients alike
from layer to layer; their biases are zero. Embeddings: N(0, 1/d_model). Scaled by √d_model (Vaswani et al. 2017,
section 3.4) their elements have variance one, of the size of the positions that are added (1/2); tied to the output
layer they give logits of variance one for a normalised state. Norms: one and zero.
"""

from torch import nn


def initialise(model: nn.Module) -> None:
    """Draw all parameters of the model anew, from torch's default generator."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm):
            module.reset_parameters()
    for module in model.modules():  # after the linear layers: a tied output layer is an embedding
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
