"""AdamW with clipping and a learning-rate schedule for the weights of one policy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from mlrl_learners.distributed import broadcast, exchange, is_main, sum_tensors, world
from mlrl_learners.errors import ConfigError, NumericsError
from mlrl_learners.policies.sharding import piece_of, whole

__all__ = ["OptimizerConfig", "PolicyOptimizer", "learning_rate_share"]

Schedule = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True)
class OptimizerConfig:
    """How gradients become steps.

    Attributes:
        lr: Highest learning rate, above 0.
        weight_decay: Decoupled weight decay, at least 0.
        beta1: Decay of the mean of gradients, in [0, 1).
        beta2: Decay of the mean of squared gradients, in [0, 1).
        max_grad_norm: Gradients are scaled down to this norm, at least 0; 0 for no limit.
        schedule: What the rate does after the warm-up: stay, or fall to 0 in a line or a cosine.
        warmup_steps: Steps over which the rate rises from 0, at least 0.
        total_steps: Steps after which a falling schedule reaches 0, above warmup_steps; unused by
            `constant`.
    """

    lr: float = 1e-5
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.99
    max_grad_norm: float = 1.0
    schedule: Schedule = "constant"
    warmup_steps: int = 0
    total_steps: int = 0

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        if not self.lr > 0:
            raise ConfigError(f"lr must be above 0, got {self.lr}")
        for name in ("weight_decay", "max_grad_norm", "warmup_steps", "total_steps"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} must be at least 0, got {getattr(self, name)}")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must be in [0, 1), got {getattr(self, name)}")
        if self.schedule not in ("constant", "linear", "cosine"):
            raise ConfigError(f"schedule must be constant, linear or cosine, got {self.schedule!r}")
        if self.schedule != "constant" and self.total_steps <= self.warmup_steps:
            raise ConfigError(
                f"total_steps must be above warmup_steps ({self.warmup_steps}) for the schedule "
                f"{self.schedule!r}, got {self.total_steps}"
            )


def learning_rate_share(step: int, config: OptimizerConfig) -> float:
    """Return which share of `lr` the step counted from 0 uses."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    if config.schedule == "constant":
        return 1.0
    span = config.total_steps - config.warmup_steps
    done = min(1.0, (step - config.warmup_steps) / span)
    return 1.0 - done if config.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))


class PolicyOptimizer:
    """Owns the optimizer state of some parameters.

    Args:
        parameters: What is trained; frozen ones are left out.
        config: Rate, clipping, schedule.

    Raises:
        ConfigError: If all of them are frozen.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], config: OptimizerConfig) -> None:
        self.config = config
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        if not self.parameters:
            raise ConfigError("there is nothing to train: no weight of the model takes a gradient")
        broadcast([p.data for p in self.parameters if not isinstance(p, DTensor)])
        self.num_steps = 0
        self._adamw = torch.optim.AdamW(
            self.parameters,
            lr=config.lr,
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
            **_implementation(self.parameters),
        )

    def step(self) -> float:
        """Apply the accumulated gradients, clear them, and return their norm before clipping.

        With several processes they are summed first, so that all of them take the same step; a
        process that had nothing to do takes part with zeros.

        Raises:
            NumericsError: If the norm is not finite; the parameters are left as they were.
        """
        self._sum_gradients()
        norm = self._clip()
        if not math.isfinite(norm):
            self.clear()
            raise NumericsError(f"the gradient norm is {norm}; lower lr or look at the rollouts")
        for group in self._adamw.param_groups:
            group["lr"] = self.lr
        self._adamw.step()
        self.clear()
        self.num_steps += 1
        return norm

    def clear(self) -> None:
        """Forget accumulated gradients, as an update that failed half-way leaves them."""
        self._adamw.zero_grad(set_to_none=True)

    def _clip(self) -> float:
        """Scale gradients down to the limit and return their norm before."""
        limit = self.config.max_grad_norm or math.inf
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        pieces = [each.to_local() for each in gradients if isinstance(each, DTensor)]
        if not pieces:
            return float(torch.nn.utils.clip_grad_norm_(self.parameters, limit))
        wholes = [each for each in gradients if not isinstance(each, DTensor)]
        here = sum(float(piece.double().square().sum()) for piece in pieces)
        norm = math.sqrt(
            sum(exchange(here)) + sum(float(each.double().square().sum()) for each in wholes)
        )
        if norm > limit:
            for each in (*pieces, *wholes):
                each.mul_(limit / norm)
        return norm

    def _sum_gradients(self) -> None:
        """Sum over processes; what no process has a gradient of is left without one."""
        if world().size == 1:
            return
        present = [parameter.grad is not None for parameter in self.parameters]
        anywhere = [any(flags) for flags in zip(*exchange(present), strict=True)]
        gradients = []
        for parameter, is_used in zip(self.parameters, anywhere, strict=True):
            if is_used and not isinstance(parameter, DTensor):  # those are summed in the backward
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                gradients.append(parameter.grad)
        sum_tensors(gradients)

    @property
    def lr(self) -> float:
        """Learning rate of the next step."""
        return self.config.lr * learning_rate_share(self.num_steps, self.config)

    def state_dict(self) -> dict[str, Any]:
        """Return everything `load_state_dict` needs to go on exactly here.

        Where weights are in pieces, all processes must call it, and the first one gets all of it.
        """
        state = self._adamw.state_dict()
        moments = {
            number: {name: _on_the_first(value) for name, value in values.items()}
            for number, values in state["state"].items()
        }
        return {"adamw": {**state, "state": moments}, "num_steps": self.num_steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        moments = {
            number: {name: piece_of(value, self.parameters[number]) for name, value in mine.items()}
            for number, mine in state["adamw"]["state"].items()
        }
        self._adamw.load_state_dict({**state["adamw"], "state": moments})
        for group in self._adamw.param_groups:
            group.update(_implementation(self.parameters))
        self.num_steps = state["num_steps"]


def _implementation(parameters: Sequence[nn.Parameter]) -> dict[str, Any]:
    """Return which implementation of AdamW takes these parameters fastest."""
    in_pieces = [isinstance(parameter, DTensor) for parameter in parameters]
    if any(in_pieces) and not all(in_pieces):  # only the plain loop takes both kinds
        return {"foreach": False, "fused": False}
    if parameters[0].device.type == "cpu":
        return {"foreach": False, "fused": True}
    return {"foreach": None, "fused": None}


def _on_the_first(value: Tensor) -> Tensor | None:
    """Put a tensor in pieces together in the first process; any other is returned as it is."""
    if not isinstance(value, DTensor):
        return value
    together = whole(value)
    return together.cpu() if is_main() else None
