"""TensorBoard logger, which does not need TensorFlow."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlrl_learners.errors import ConfigError, RunDirError

__all__ = ["TensorBoardLogger", "open_logger"]


class TensorBoardLogger:
    """Writes metrics as float32 scalars into `run_dir/tensorboard`.

    A resumed run writes a new file that begins with a session-start event, on which TensorBoard
    discards earlier points of the same and later steps.

    Args:
        run_dir: The run directory.

    Raises:
        ConfigError: If the `tensorboard` package is missing.
        RunDirError: If the folder cannot be written.
    """

    def __init__(self, run_dir: Path) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as error:
            fix = "pip install 'mlrl[tensorboard]', or set logging.tensorboard to false"
            raise ConfigError(f"TensorBoard is not installed: {fix}") from error
        folder = Path(run_dir) / "tensorboard"
        try:
            self._writer = EventFileWriter(str(folder))
        except OSError as error:
            raise RunDirError(f"cannot write {str(folder)!r}: {error}") from error
        self._events, self._summaries = event_pb2, summary_pb2
        self._begun = False

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Write and flush the metrics of one step."""
        if not self._begun:
            self._begin(step)
        values = [
            self._summaries.Summary.Value(tag=name, simple_value=value)
            for name, value in metrics.items()
        ]
        self._add(step, summary=self._summaries.Summary(value=values))
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def _begin(self, step: int) -> None:
        start = self._events.SessionLog(status=self._events.SessionLog.START)
        self._add(step, session_log=start)
        self._begun = True

    def _add(self, step: int, **content: object) -> None:
        self._writer.add_event(self._events.Event(wall_time=time.time(), step=step, **content))


def open_logger(run_dir: Path, config: Mapping[str, Any]) -> TensorBoardLogger | None:
    """Return the logger if `logging.tensorboard` is set."""
    logging = config["logging"]
    is_wanted = logging["tensorboard"] or "tensorboard" in logging["loggers"]
    return TensorBoardLogger(run_dir) if is_wanted else None
