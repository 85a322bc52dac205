"""How every parameter starts: the one place.

Linear layers: Xavier uniform (Glorot & Bengio 2010), which keeps the variance of activations and of gradients alike
from layer to layer; their biases are zero. Embeddings: N(0, 1/d_model). Scaled by √d_model (Vaswani et al. 2017,
section 3.4) their elements have variance one, of the size of the positions that are added (1/2); tied to the output
layer they give logits of variance one for a normalised state. Norms: one and zero. The tables of T5's positions start
as embeddings do, small beside the scores; u and v of Transformer-XL are biases of the queries, and zero. Linformer's
mixtures: as they say themselves (``kernels/low_rank.py``).

With ``zero_init`` the last matrix of each sub-layer starts at zero, so that a residual stream passes through unchanged
and every layer grows from the identity (the last layer of a branch in Fixup, Zhang et al. 2019; ReZero, Bachlechner et
al. 2021, does it with a scalar). Gradients still reach it, and from its first step on everything before it.
"""

from torch import nn

from transformer_cli.model.head_norm import HeadNorm
from transformer_cli.model.kernels import Linformer
from transformer_cli.model.norms import RMSNorm
from transformer_cli.model.positions import T5Positions, TransformerXLPositions

_LAST_OF_A_SUB_LAYER = ("out_proj", "w_2")


def initialise(model: nn.Module, *, zero_init: bool = False) -> None:
    """Draw all parameters of the model anew, from torch's default generator.

    Args:
        model: whose modules are known by their types.
        zero_init: start the last matrix of each sub-layer at zero; all other parameters start as without it.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm | RMSNorm | HeadNorm | Linformer):
            module.reset_parameters()
    for module in model.modules():  # after the linear layers: a tied output layer is an embedding
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
    for module in model.modules():
        if isinstance(module, T5Positions | TransformerXLPositions):
            module.reset_parameters()
    for name, module in model.named_modules() if zero_init else ():
        if name.endswith(_LAST_OF_A_SUB_LAYER) and isinstance(module, nn.Linear):
            nn.init.zeros_(module.weight)
