"""Sections `train` and `logging` of a configuration."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mlrl_learners.errors import ConfigError
from mlrl_learners.seeding import MOST_SEED

__all__ = ["LoggingConfig", "TrainConfig"]


@dataclass(frozen=True)
class TrainConfig:
    """Length of the training, checkpoints and evaluations.

    Attributes:
        iterations: Number of iterations (rollouts and one update), at least 1.
        epochs: In place of `iterations`, how often every task of the environment is played, above
            0; null for `iterations`.
        tasks_per_iteration: Tasks per iteration, at least 1.
        seed: Seed of the task order and of all sampling, from 0 to 2**63 - 1.
        checkpoint_every: Iterations between checkpoints, at least 1.
        keep_checkpoints: Number of newest checkpoints to keep, at least 1.
        eval_every: Iterations between evaluations; 0 for none.
        eval_tasks: Tasks per evaluation, at least 1; null for the whole split.
        eval_samples: Episodes per task in an evaluation, at least 1.
        eval_options: Options of the evaluation environment that differ from `env.options`.
    """

    iterations: int = 100
    epochs: float | None = None
    tasks_per_iteration: int = 4
    seed: int = 0
    checkpoint_every: int = 1
    keep_checkpoints: int = 2
    eval_every: int = 0
    eval_tasks: int | None = None
    eval_samples: int = 1
    eval_options: dict[str, Any] = field(default_factory=lambda: {"split": "eval"})

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is out of range.
        """
        for name, value in vars(self).items():
            low = 0 if name in ("seed", "eval_every") else 1
            if name != "epochs" and isinstance(value, int) and value < low:
                raise ConfigError(f"train.{name} must be at least {low}, got {value}")
        if self.seed > MOST_SEED:
            raise ConfigError(f"train.seed must be at most {MOST_SEED}, got {self.seed}")
        if self.epochs is not None and not 0 < self.epochs < math.inf:
            raise ConfigError(f"train.epochs must be above 0, got {self.epochs}")

    def in_iterations(self, num_tasks: int | None) -> "TrainConfig":
        """Return the section with as many iterations as its epochs are.

        Args:
            num_tasks: Number of tasks of the environment; None if it draws them from the seed.

        Raises:
            ConfigError: If there are epochs and the environment has no number of tasks.
        """
        if self.epochs is None:
            return self
        if num_tasks is None:
            raise ConfigError("train.epochs needs a number of tasks: set train.iterations")
        iterations = max(1, math.ceil(self.epochs * num_tasks / self.tasks_per_iteration))
        return replace(self, iterations=iterations)


@dataclass(frozen=True)
class LoggingConfig:
    """Loggers besides the JSON lines in the run directory.

    Attributes:
        wandb: `off`, `offline` (files in the run directory) or `online`.
        wandb_project: Weights & Biases project.
        wandb_name: Name of the run on Weights & Biases; null for the name of the run directory.
        wandb_entity: User or team on Weights & Biases; null for that of the account.
        wandb_group: Group of runs on Weights & Biases.
        wandb_tags: Tags of the run on Weights & Biases.
        tensorboard: Whether to write TensorBoard event files into `run_dir/tensorboard`.
        loggers: Further loggers: names of `mlrl_learners.loggers.LOGGERS`, or `module:function`
            of a function that takes the run directory and the configuration.
        token_ids: Whether `episodes.jsonl` also holds the token ids of prompts and completions.
    """

    wandb: Literal["off", "offline", "online"] = "off"
    wandb_project: str = "mlrl"
    wandb_name: str | None = None
    wandb_entity: str | None = None
    wandb_group: str | None = None
    wandb_tags: list[str] = field(default_factory=list)
    tensorboard: bool = False
    loggers: list[str] = field(default_factory=list)
    token_ids: bool = False
