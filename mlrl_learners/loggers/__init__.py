"""Loggers of metrics: JSON lines, Weights & Biases and TensorBoard.

All of them receive the same names and values. `JsonlFile` also writes the other JSON-lines files of
a run directory.
"""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from mlrl_learners.loggers.jsonl import JsonlFile, JsonlLogger
from mlrl_learners.loggers.tensorboard import TensorBoardLogger
from mlrl_learners.loggers.wandb import WandbLogger

__all__ = ["JsonlFile", "JsonlLogger", "Logger", "TensorBoardLogger", "WandbLogger"]


@runtime_checkable
class Logger(Protocol):
    """An object that records metrics."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Record the metrics of one step."""
        ...

    def close(self) -> None:
        """Flush pending values; the logger must not be used afterwards."""
        ...
