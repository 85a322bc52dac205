"""Which optimizer moves which parameter, which weights decay, clipping, and the state as named tensors.

AdamW moves everything, or Muon (``muon.py``) the matrices inside the layers and AdamW the rest.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from transformer_cli.config import TrainConfig
from transformer_cli.model.layers import DecoderLayer, EncoderLayer
from transformer_cli.training.muon import Muon

#: Of Vaswani et al. 2017, section 5.3.
BETAS, EPS = (0.9, 0.98), 1e-9
#: What each optimizer remembers of a parameter.
_STATE = {AdamW: ("step", "exp_avg", "exp_avg_sq"), Muon: ("momentum",)}


def build_optimizers(model: nn.Module, settings: TrainConfig, amp_dtype: torch.dtype | None = None) -> list[Optimizer]:
    """Return optimizers that share all parameters between them; ``set_learning_rate`` comes before every step.

    Under bfloat16 ``amp_dtype`` Muon's products are bfloat16 too; float16, whose range is small, is not for them.

    Weight decay is for matrices only. Biases and norms are left alone, and embedding tables too: a row whose token
    is absent from a batch gets no gradient, yet decay would shrink it, the rarer the token the further.
    """
    hidden = hidden_matrices(model) if settings.optimizer == "muon" else []
    optimizers: list[Optimizer] = [_adamw(model, {id(p) for p in hidden}, settings.weight_decay)]
    if hidden:
        dtype = torch.bfloat16 if amp_dtype is torch.bfloat16 else None
        momentum, decay = settings.muon_momentum, settings.weight_decay
        optimizers.append(Muon(hidden, momentum=momentum, weight_decay=decay, dtype=dtype))
    for optimizer in optimizers:
        own_rate = settings.muon_lr if isinstance(optimizer, Muon) else None
        for group in optimizer.param_groups:
            group["share"] = 1.0 if own_rate is None else own_rate / settings.lr
    return optimizers


def hidden_matrices(model: nn.Module) -> list[Tensor]:
    """Return the weights of all linear maps inside encoder and decoder layers: what Muon is made for.

    Embeddings and the output layer are not: each row belongs to a token, and to turn them all equally far would move
    those most that have been seen least.
    """
    layers = [module for module in model.modules() if isinstance(module, EncoderLayer | DecoderLayer)]
    maps = [module for layer in layers for module in layer.modules() if isinstance(module, nn.Linear)]
    return [linear.weight for linear in maps if linear.weight.requires_grad]


def _adamw(model: nn.Module, without: set[int], weight_decay: float) -> AdamW:
    """``fused`` does the whole update in one kernel per device; it is as deterministic as the loop in Python."""
    tables = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    trained = [p for p in model.parameters() if p.requires_grad and id(p) not in without]
    decayed = [p for p in trained if p.dim() >= 2 and id(p) not in tables]
    others = [p for p in trained if p.dim() < 2 or id(p) in tables]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return AdamW([group for group in groups if group["params"]], lr=0.0, betas=BETAS, eps=EPS, fused=True)


def set_learning_rate(optimizers: Sequence[Optimizer], rate: float) -> None:
    """Set the rate of the next step; Muon's differs from it by a constant factor if it has one of its own."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate * group["share"]


def gradients(model: nn.Module) -> list[Tensor]:
    """Return the gradients that there are."""
    return [p.grad for p in model.parameters() if p.grad is not None]


def all_gradients(model: nn.Module) -> list[Tensor]:
    """Return the gradient of every trained parameter, in the same order on every rank; one that is missing is zero."""
    trained = [p for p in model.parameters() if p.requires_grad]
    for parameter in trained:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return [p.grad for p in trained if p.grad is not None]


def gradient_norm(model: nn.Module) -> Tensor:
    """Return the Euclidean norm of all gradients together, a scalar that stays on its device."""
    return torch.nn.utils.get_total_norm(gradients(model))


def clip_gradients(model: nn.Module, norm: Tensor, clip_norm: float | None) -> None:
    """Scale the gradients so that ``norm`` does not exceed ``clip_norm`` (Pascanu et al. 2013).

    On a CPU torch does norm and scaling tensor by tensor; one call for all of them saves a tenth of their 2 ms, with
    1.8 M parameters, and is not worth code of our own.
    """
    if clip_norm is not None:
        torch.nn.utils.clip_grads_with_norm_(model.parameters(), clip_norm, norm)


def optimizer_tensors(model: nn.Module, optimizers: Sequence[Optimizer]) -> dict[str, Tensor]:
    """Return moments and step counts as ``exp_avg.<parameter>``, ``momentum.<parameter>`` and so on, to be stored."""
    return {
        f"{kind}.{name}": optimizer.state[parameter][kind]
        for name, parameter in model.named_parameters()
        for optimizer in optimizers
        if parameter in optimizer.state
        for kind in _STATE[type(optimizer)]
    }


def restore_optimizers(model: nn.Module, optimizers: Sequence[Optimizer], tensors: dict[str, Tensor]) -> None:
    """Put stored state back; a parameter without any has not been stepped yet.

    Written into ``state`` directly: ``load_state_dict`` addresses parameters by number, which changes silently when
    a module moves.
    """
    for optimizer in optimizers:
        kinds = _STATE[type(optimizer)]
        mine = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        optimizer.state.clear()
        for name, parameter in model.named_parameters():
            if id(parameter) in mine and f"{kinds[0]}.{name}" in tensors:
                optimizer.state[parameter] = {kind: tensors[f"{kind}.{name}"].to(parameter.device) for kind in kinds}
