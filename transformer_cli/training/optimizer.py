"""AdamW, which weights decay, how gradients are clipped, and the optimizer's state as named tensors."""

import torch
from torch import Tensor, nn
from torch.optim import AdamW

#: Of Vaswani et al. 2017, section 5.3.
BETAS, EPS = (0.9, 0.98), 1e-9
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def build_optimizer(model: nn.Module, weight_decay: float) -> AdamW:
    """Return AdamW over all parameters; its learning rate is set before every step.

    Weight decay is for matrices only. Biases and norms are left alone, and embedding tables too: a row whose token
    is absent from a batch gets no gradient, yet decay would shrink it, the rarer the token the further.

    ``fused`` does the whole update in one kernel per device; it is as deterministic as the loop in Python.
    """
    tables = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    trained = [p for p in model.parameters() if p.requires_grad]
    decayed = [p for p in trained if p.dim() >= 2 and id(p) not in tables]
    others = [p for p in trained if p.dim() < 2 or id(p) in tables]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return AdamW([group for group in groups if group["params"]], lr=0.0, betas=BETAS, eps=EPS, fused=True)


def set_learning_rate(optimizer: AdamW, rate: float) -> None:
    """Set the rate of the next step, for all groups."""
    for group in optimizer.param_groups:
        group["lr"] = rate


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
    """Return the norm of all gradients together, a scalar that stays on its device."""
    return torch.nn.utils.get_total_norm(gradients(model))


def clip_gradients(model: nn.Module, norm: Tensor, clip_norm: float | None) -> None:
    """Scale the gradients so that ``norm`` does not exceed ``clip_norm`` (Pascanu et al. 2013)."""
    if clip_norm is not None:
        torch.nn.utils.clip_grads_with_norm_(model.parameters(), clip_norm, norm)


def optimizer_tensors(model: nn.Module, optimizer: AdamW) -> dict[str, Tensor]:
    """Return the moments and step counts as ``exp_avg.<parameter>`` and so on, to be stored."""
    return {
        f"{moment}.{name}": optimizer.state[parameter][moment]
        for name, parameter in model.named_parameters()
        if parameter in optimizer.state
        for moment in _MOMENTS
    }


def restore_optimizer(model: nn.Module, optimizer: AdamW, tensors: dict[str, Tensor]) -> None:
    """Put stored moments back; a parameter without any has not been stepped yet.

    Written into ``state`` directly: ``load_state_dict`` addresses parameters by number, which changes silently when
    a module moves.
    """
    optimizer.state.clear()
    for name, parameter in model.named_parameters():
        if f"step.{name}" in tensors:
            optimizer.state[parameter] = {
                moment: tensors[f"{moment}.{name}"].to(parameter.device) for moment in _MOMENTS
            }
