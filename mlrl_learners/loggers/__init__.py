"""Loggers of metrics: JSON lines, Weights & Biases and TensorBoard.

All of them receive the same names and values. `JsonlFile` also writes the other JSON-lines files of
a run directory.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mlrl_envs.config import import_object
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.loggers.jsonl import JsonlFile, JsonlLogger, read_records
from mlrl_learners.loggers.tensorboard import TensorBoardLogger
from mlrl_learners.loggers.wandb import WandbLogger

__all__ = [
    "LOGGERS",
    "JsonlFile",
    "JsonlLogger",
    "Logger",
    "TensorBoardLogger",
    "WandbLogger",
    "open_loggers",
    "read_records",
]

LOGGERS = {
    "tensorboard": "mlrl_learners.loggers.tensorboard:open_logger",
    "wandb": "mlrl_learners.loggers.wandb:open_logger",
}
"""Functions that open a logger, by name.

Each takes the run directory and the resolved configuration as nested mappings, and returns a
`Logger`, or None if the configuration does not ask for it.
"""


@runtime_checkable
class Logger(Protocol):
    """An object that records metrics."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Record the metrics of one step."""
        ...

    def close(self) -> None:
        """Flush pending values; the logger must not be used afterwards."""
        ...


def open_loggers(run_dir: Path, config: Mapping[str, Any]) -> list[Logger]:
    """Return the loggers that the section `logging` of a configuration asks for.

    Args:
        run_dir: The run directory.
        config: The resolved configuration as nested mappings.

    Raises:
        UnknownNameError: If `logging.loggers` has a name that is not in `LOGGERS`.
        ConfigError: If a function cannot be imported, or a package of a logger is missing.
        RunDirError: If a logger cannot write into the run directory.
    """
    for name in config["logging"]["loggers"]:
        if ":" not in name and name not in LOGGERS:
            raise unknown_name("logger", name, LOGGERS)
    others = [name for name in config["logging"]["loggers"] if ":" in name]
    opened = [_imported(path)(run_dir, config) for path in [*LOGGERS.values(), *others]]
    return [logger for logger in opened if logger is not None]


def _imported(path: str) -> Any:  # noqa: ANN401 - a plug point
    try:
        return import_object(path)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"logger {path!r} cannot be imported: {error}") from error
