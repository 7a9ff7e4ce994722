"""Section `ray` of a configuration: sampling and playing by processes that Ray starts."""

import math
import re
from dataclasses import dataclass

from mlrl_learners.config.options import check_unread
from mlrl_learners.errors import ConfigError

__all__ = ["RayConfig"]

ADDRESS = re.compile(r"(auto|[A-Za-z0-9._-]+:\d{1,5}|\[[0-9A-Fa-f:]+\]:\d{1,5})?")


@dataclass(frozen=True)
class RayConfig:
    """Sampling by processes that Ray starts, on this machine or on a cluster.

    Attributes:
        enabled: Whether Ray samples; `--engine ray` sets it.
        address: Cluster to connect to: `auto` for the one of this machine, or `HOST:PORT` of its
            head; empty to start Ray here, and to stop it with the run.
        samplers: Number of processes that sample, at least 1.
        rollouts: Number of processes that play the rollout trees of training, at least 0; with 0
            the trainer plays them. Each has samplers / rollouts samplers of its own.
        threads: Threads of each, at least 1; equal bits need those of the run without Ray.
        gpus: GPUs of each, at least 0; with 0 they compute on CPUs.
        lag: Iterations that sampling may be ahead of the updates, K, at least 0: iteration j is
            sampled by the weights after update j - 1 - K.
        job_seconds: Time limit of one batch of prompts in seconds, above 0; a process that exceeds
            it is replaced.
        rollout_seconds: Time limit of the trees that one process plays in an iteration, in
            seconds, above 0.
        start_seconds: Time limit of the start of a process in seconds, above 0.
        max_attempts: Attempts at one batch of prompts or trees, at least 1.
    """

    enabled: bool = False
    address: str = ""
    samplers: int = 1
    rollouts: int = 0
    threads: int = 1
    gpus: float = 0.0
    lag: int = 0
    job_seconds: float = 600.0
    rollout_seconds: float = 3600.0
    start_seconds: float = 300.0
    max_attempts: int = 3

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        for name in ("samplers", "threads", "max_attempts"):
            if getattr(self, name) < 1:
                raise ConfigError(f"ray.{name} must be at least 1, got {getattr(self, name)}")
        for name in ("rollouts", "gpus", "lag"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"ray.{name} must be at least 0, got {getattr(self, name)}")
        for name in ("job_seconds", "rollout_seconds", "start_seconds"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"ray.{name} must be above 0, got {getattr(self, name)}")
        if self.rollouts and self.samplers % self.rollouts:
            raise ConfigError(
                "ray.samplers must be a multiple of ray.rollouts, whose processes have equal "
                f"numbers of samplers, got {self.samplers} and {self.rollouts}"
            )
        if not ADDRESS.fullmatch(self.address):
            raise ConfigError(
                f"ray.address must be auto, HOST:PORT, or empty to start Ray here, got "
                f"{self.address!r}"
            )

    @property
    def processes(self) -> int:
        """Number of processes that the trainer asks."""
        return self.rollouts or self.samplers

    def check_read(self) -> None:
        """Check that options have an effect, once all that enable Ray are known.

        Raises:
            ConfigError: If an option is set and Ray does not sample.
        """
        if not self.enabled:
            names = tuple(name for name in vars(self) if name != "enabled")
            check_unread(self, names, "the engine torch: add --engine ray")
        elif not self.rollouts:
            check_unread(self, ("rollout_seconds",), "ray.rollouts 0")
