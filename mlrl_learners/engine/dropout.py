"""Dropout switched off in every model family, so that the policy trained is the one sampled.

Families drop in three ways: by `nn.Dropout`, by a function whose rate is an attribute of a module
(OPT, BLOOM) or of the configuration (Falcon), and by random numbers that a module draws while it is
in training mode (dropped layers, jitter of routers). Rates are set to 0. Whatever else looks at
training mode is left in evaluation mode, with and without gradient checkpointing.
`model_checks.enable_checkpointing` tries whether that is all.
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
    """Put a model in evaluation mode, but for the modules that checkpoint, if they shall.

    `transformers` looks at the mode of the module that checkpoints alone. Its children stay in
    evaluation mode: a router in them draws no random numbers.
    """
    model.eval()
    for module in model.modules() if checkpointing else ():
        if getattr(module, "gradient_checkpointing", False):
            module.training = True


def _set_rates_to_zero(owner: Any) -> None:  # noqa: ANN401 - a module or a configuration
    """Do so for attributes by names such as `dropout`, `attn_pdrop`, `layerdrop`."""
    for name, value in list(getattr(owner, "__dict__", {}).items()):
        if "drop" in name and isinstance(value, float):
            setattr(owner, name, 0.0)
