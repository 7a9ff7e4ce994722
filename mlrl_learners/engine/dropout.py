"""Dropout switched off in every model family, so that training computes the sampled policy.

Families apply dropout in three ways: by `nn.Dropout`, by a function whose rate is an attribute of a
module (OPT, BLOOM) or of the configuration (Falcon), and by random numbers that a module draws in
training mode (layer dropout, router jitter). The rates are set to 0. Modules whose behaviour
depends on training mode otherwise stay in evaluation mode, with and without gradient checkpointing.
`model_checks.enable_checkpointing` checks the result.
"""

from typing import Any

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

__all__ = ["use_evaluation_mode", "without_dropout"]


def without_dropout(model: nn.Module) -> None:
    """Set every dropout rate of a model and of its configuration to 0, in place."""
    for module in model.modules():
        if isinstance(module, _DropoutNd):
            module.p = 0.0
        for owner in (module, getattr(module, "config", None)):
            _set_rates_to_zero(owner)


def use_evaluation_mode(model: nn.Module, *, checkpointing: bool) -> None:
    """Put a model in evaluation mode, except for the modules that checkpoint, if `checkpointing`.

    `transformers` checkpoints in a module whose own mode is training. Its children stay in
    evaluation mode, so that routers draw no random numbers.
    """
    model.eval()
    for module in model.modules() if checkpointing else ():
        if getattr(module, "gradient_checkpointing", False):
            module.training = True


def _set_rates_to_zero(owner: Any) -> None:  # noqa: ANN401 - a module or a configuration
    """Set float attributes with names such as `dropout`, `attn_pdrop`, `layerdrop` to 0."""
    for name, value in list(getattr(owner, "__dict__", {}).items()):
        if "drop" in name and isinstance(value, float):
            setattr(owner, name, 0.0)
