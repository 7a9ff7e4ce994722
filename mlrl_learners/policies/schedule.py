"""Optimizer options, and learning-rate schedules over a run."""

import math
from dataclasses import dataclass
from typing import Literal

from mlrl_learners.errors import ConfigError

__all__ = ["OptimizerConfig", "learning_rate_share", "planned_steps"]

Kind = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True)
class OptimizerConfig:
    """Which optimizer: learning rate, its schedule, and the limits of a step.

    Attributes:
        lr: Peak learning rate, above 0.
        weight_decay: Decoupled weight decay, at least 0.
        beta1: Decay of the mean of gradients, in [0, 1).
        beta2: Decay of the mean of squared gradients, in [0, 1).
        max_grad_norm: Gradients are clipped to this norm, at least 0; 0 for no limit.
        schedule: Learning rate after the warm-up: constant, or decaying to 0 linearly or by a
            cosine.
        warmup_steps: Optimizer steps over which the rate rises from 0, at least 0; below the steps
            of the run if the rate decays.
        total_steps: Optimizer steps after which a decaying schedule reaches 0, above warmup_steps
            and at least those of the run; 0 for those of the run. Always 0 for `constant`.
    """

    lr: float = 1e-5
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.99
    max_grad_norm: float = 1.0
    schedule: Kind = "constant"
    warmup_steps: int = 0
    total_steps: int = 0

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range, or has no effect beside another.
        """
        if not 0 < self.lr < math.inf:
            raise ConfigError(f"lr must be above 0, got {self.lr}")
        for name in ("weight_decay", "max_grad_norm", "warmup_steps", "total_steps"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} must be at least 0, got {getattr(self, name)}")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must be in [0, 1), got {getattr(self, name)}")
        if self.weight_decay == math.inf:
            raise ConfigError("weight_decay must be finite, got inf")
        if self.schedule not in ("constant", "linear", "cosine"):
            raise ConfigError(f"schedule must be constant, linear or cosine, got {self.schedule!r}")
        if self.schedule == "constant" and self.total_steps:
            raise ConfigError(
                f"total_steps {self.total_steps} has no meaning for schedule 'constant': "
                "leave total_steps out, or set schedule to linear or cosine"
            )
        if self.total_steps and self.total_steps <= self.warmup_steps:
            raise ConfigError(
                f"total_steps must be above warmup_steps ({self.warmup_steps}) for the schedule "
                f"{self.schedule!r}, got {self.total_steps}"
            )

    @property
    def steps_per_update(self) -> int:
        """Most optimizer steps per update of a learner."""
        return 1


def learning_rate_share(
    step: int, config: OptimizerConfig, total_steps: int | None = None
) -> float:
    """Return the learning rate of an optimizer step as a share of `lr`, in [0, 1].

    Args:
        step: Index of the step, from 0.
        config: The schedule.
        total_steps: Steps after which the rate is 0; None for `config.total_steps`.
    """
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    if config.schedule == "constant":
        return 1.0
    total = config.total_steps if total_steps is None else total_steps
    done = min(1.0, (step - config.warmup_steps) / (total - config.warmup_steps))
    return 1.0 - done if config.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))


def planned_steps(config: OptimizerConfig, num_updates: int) -> int:
    """Return the optimizer steps after which the rate of a run reaches 0; 0 if it is constant.

    Args:
        config: The schedule.
        num_updates: Updates of the whole run, including those before a resume.

    Raises:
        ConfigError: If the run has steps at rate 0, or ends within its warm-up.
    """
    if config.schedule == "constant":
        return 0
    steps = num_updates * config.steps_per_update
    if config.total_steps and config.total_steps < steps:
        raise ConfigError(
            f"total_steps {config.total_steps} is below the {steps} optimizer steps of "
            f"{num_updates} updates, the last of which would train at lr 0; leave total_steps out "
            f"to take those of the run, or set it to at least {steps}"
        )
    if steps <= config.warmup_steps:
        raise ConfigError(
            f"warmup_steps must be below the {steps} optimizer steps of {num_updates} updates for "
            f"the schedule {config.schedule!r}, got {config.warmup_steps}"
        )
    return config.total_steps or steps
