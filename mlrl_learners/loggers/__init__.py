"""Where metrics go: JSON lines always, Weights & Biases and TensorBoard on request.

All of them are given the same names and values. `JsonlFile` is what every file of a run directory
is written through.
"""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from mlrl_learners.loggers.jsonl import JsonlFile, JsonlLogger
from mlrl_learners.loggers.tensorboard import TensorBoardLogger
from mlrl_learners.loggers.wandb import WandbLogger

__all__ = ["JsonlFile", "JsonlLogger", "Logger", "TensorBoardLogger", "WandbLogger"]


@runtime_checkable
class Logger(Protocol):
    """Anything that takes metrics."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Record the metrics of one step; the same names go to every logger."""
        ...

    def close(self) -> None:
        """Write what is still held back; the logger is not used again."""
        ...
