"""A model's norms and gated layers, made to keep less for the backward pass: same numbers.

Of what a layer of Llama's kind keeps they spare a third. A layer is exchanged where its numbers are
the same on a trial, whatever its family calls it.
"""

import inspect

import torch
from torch import Tensor, nn

from mlrl_learners.engine.kernels.recomputing import gated, gated_product, rms_norm
from mlrl_learners.engine.onednn_layers import FastLinear

__all__ = ["LeanGate", "LeanNorm", "use_lean_layers"]


class LeanNorm(nn.Module):
    """An RMSNorm by way of `mlrl_learners.engine.kernels.recomputing`."""

    weight: Tensor
    variance_epsilon: float

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return normed states, `[..., H]`."""
        return rms_norm(hidden_states, self.weight, self.variance_epsilon)

    @staticmethod
    def fits(module: nn.Module) -> bool:
        """Return whether a module has the parts of an RMSNorm, and no more."""
        weights = dict(module.named_parameters())
        return (
            list(weights) == ["weight"]
            and weights["weight"].dim() == 1
            and isinstance(getattr(module, "variance_epsilon", None), float)
        )


class LeanGate(nn.Module):
    """A gated feed-forward layer by way of `mlrl_learners.engine.kernels.recomputing`."""

    gate_proj: nn.Linear
    up_proj: nn.Linear
    down_proj: nn.Linear

    def forward(self, x: Tensor) -> Tensor:
        """Return `down(silu(gate(x)) * up(x))`, `[..., H]`."""
        gate, up = self.gate_proj(x), self.up_proj(x)
        if torch.is_grad_enabled() and _is_a_product(self.down_proj):
            return gated_product(gate, up, self.down_proj.weight)
        down: Tensor = self.down_proj(gated(gate, up))
        return down

    @staticmethod
    def fits(module: nn.Module) -> bool:
        """Return whether a module has the parts of such a layer, and no more."""
        names = {name for name, _ in module.named_children()} - {"act_fn"}
        return names == {"gate_proj", "up_proj", "down_proj"} and (
            all(_is_a_product(layer) for layer in map(module.get_submodule, names))
        )


def use_lean_layers(model: nn.Module) -> None:
    """Exchange what can be exchanged, in place: same weights, same names."""
    for module in list(model.modules()):
        for kind in (LeanNorm, LeanGate):
            if kind.fits(module) and len(inspect.signature(module.forward).parameters) == 1:
                _exchange(module, kind)


def _exchange(module: nn.Module, kind: type[LeanNorm] | type[LeanGate]) -> None:
    """Give a module another class, if that computes what its own does."""
    weight = next(module.parameters())
    width = weight.shape[-1]  # both read states as wide as their first weight's rows
    states = torch.linspace(-2, 2, 2 * width, dtype=weight.dtype, device=weight.device)
    states = states.view(2, width)
    before = type(module)
    theirs = module(states)
    module.__class__ = kind
    ours = module(states)
    tolerance = 1e-5 if weight.dtype == torch.float32 else 0.02
    if ours.dtype != theirs.dtype or not torch.allclose(ours, theirs, tolerance, tolerance):
        module.__class__ = before


def _is_a_product(layer: nn.Module) -> bool:
    """Return whether a layer is nothing but a product, with nobody listening."""
    listeners = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    is_heard = any(getattr(layer, name) for name in listeners)
    is_linear = type(layer) in (nn.Linear, FastLinear)
    return is_linear and getattr(layer, "bias", None) is None and not is_heard
