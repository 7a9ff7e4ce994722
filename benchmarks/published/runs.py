"""Runs of published experiments: commands, resumption, and the end of the budget."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.published.configs import overrides
from benchmarks.published.plans import Experiment
from mlrl_learners.runs.files import CONFIG_FILE

__all__ = ["command", "run"]

GRACE = 600.0  # seconds for the iteration in progress and its checkpoint
INTERRUPTED = (130, -signal.SIGINT)  # of `mlrl train`, and before it handles the signal


def command(experiment: Experiment, seed: int, run_dir: Path, *, smoke: bool) -> list[str]:
    """Return the command that starts a run, or continues the one in `run_dir`.

    Both have the whole configuration, so that a run of another one is refused.
    """
    resume = ["--resume"] if (run_dir / CONFIG_FILE).exists() else []
    words = [sys.executable, "-m", "mlrl_learners", "train", experiment.preset, *resume]
    return [*words, "--run-dir", str(run_dir), *overrides(experiment, seed, smoke=smoke)]


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
        The exit status, or None if the budget ended first and the run is to be continued.
    """
    with subprocess.Popen(words) as process:
        try:
            return process.wait(max(0.0, deadline - clock()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                status = process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()  # the last checkpoint is kept
                return None
            return None if status in INTERRUPTED else status
