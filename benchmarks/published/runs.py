"""Runs of published experiments: commands, resumption, and the end of the budget."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.published.plans import SMOKE, Experiment
from mlrl_learners.runs.files import CONFIG_FILE

__all__ = ["command", "run"]

GRACE = 600.0  # seconds for the iteration in progress and its checkpoint


def command(experiment: Experiment, seed: int, run_dir: Path, *, smoke: bool) -> list[str]:
    """Return the command that starts a run, or continues the one in `run_dir`."""
    words = [sys.executable, "-m", "mlrl_learners", "train"]
    if (run_dir / CONFIG_FILE).exists():
        return [*words, "--run-dir", str(run_dir), "--resume"]
    options = {"learner.model": experiment.model, **experiment.options, "train.seed": seed}
    if smoke:
        options |= {**SMOKE, **experiment.smoke}
    values = [word for key, value in options.items() for word in (f"--{key}", _text(value))]
    return [*words, experiment.preset, "--run-dir", str(run_dir), *values]


def _text(value: object) -> str:
    """Return a value as the command line reads it: text as it is, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def run(
    words: Sequence[str], deadline: float, clock: Callable[[], float] = time.monotonic
) -> int | None:
    """Run a command until it ends or the budget does.

    Args:
        words: From `command`.
        deadline: Time of `clock` at which the run is interrupted; it writes a checkpoint and the
            same command line of this script continues it.
        clock: Seconds.

    Returns:
        The exit status, or None if the budget ended first.
    """
    with subprocess.Popen(words) as process:
        try:
            return process.wait(max(0.0, deadline - clock()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()  # the last checkpoint is kept
            return None
