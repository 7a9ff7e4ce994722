"""Runs of a plan in folders of their own: finished ones are kept, interrupted ones continue."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mlrl_learners.config.run import RunConfig, to_mapping
from mlrl_learners.config.yaml import parse_yaml
from mlrl_learners.errors import RunDirError
from mlrl_learners.runs.directory import changed_setting
from mlrl_learners.runs.files import CONFIG_FILE

__all__ = ["check_same", "finish", "finish_all", "keep_same", "shared_weights"]


def finish(config: RunConfig, run_dir: Path) -> bool:
    """Train a run, or what is left of it; return whether it is finished.

    Args:
        config: The run; its last iteration writes a checkpoint.
        run_dir: Folder of the run.

    Returns:
        False if a signal ended it early; the next call continues it.

    Raises:
        RunDirError: If the folder holds a run of another configuration.
    """
    from mlrl_learners.cli.train import train_config

    check_same(config, run_dir)
    if (run_dir / "checkpoints" / f"step_{config.train.iterations}").exists():
        return True
    resume = (run_dir / CONFIG_FILE).exists()
    return not train_config(config, run_dir, resume=resume, progress=False).interrupted


def finish_all(runs: Iterable[tuple[RunConfig, Path]]) -> bool:
    """Train runs in order, and return whether all are finished; say so if a signal ended one."""
    for config, run_dir in runs:
        if not finish(config, run_dir):
            print("interrupted: the same command continues", file=sys.stderr)
            return False
    return True


def check_same(config: RunConfig, run_dir: Path) -> None:
    """Check that a folder holds no run of another configuration.

    Raises:
        RunDirError: If it does.
    """
    file = run_dir / CONFIG_FILE
    if not file.exists():
        return
    stored: Any = parse_yaml(file.read_text("utf-8"), str(file))
    changed = changed_setting(stored, to_mapping(config))
    before, now = stored["train"]["iterations"], config.train.iterations
    if before != now:  # a run may go on for longer, but its learning rate has followed another plan
        changed = changed or f"train.iterations was {before!r}, now {now!r}"
    if changed:
        raise RunDirError(
            f"{str(run_dir)!r} holds a run of another configuration: {changed}; move it away"
        )


def keep_same(file: Path, made: Any) -> None:  # noqa: ANN401 - JSON values
    """Write beside a part of a folder how it was made, or check that it was made in this way.

    Raises:
        RunDirError: If it was made in another way.
    """
    text = json.dumps(json.loads(json.dumps(made)), indent=1) + "\n"
    if not file.exists():
        partial = file.with_suffix(".partial")
        partial.write_text(text, encoding="utf-8")
        partial.rename(file)
    elif file.read_text("utf-8") != text:
        raise RunDirError(
            f"{str(file)!r} says that the play or model beside it was made in another way; move "
            f"{str(file.parent)!r} away"
        )


def shared_weights(run_dir: Path, step: int) -> Path:
    """Return the folder of the weights that all agents share, after an iteration."""
    return run_dir / "checkpoints" / f"step_{step}" / "learner" / "shared"
