"""Runs of a plan in folders of their own: finished ones are kept, interrupted ones continue."""

from pathlib import Path

from mlrl_learners.config.run import RunConfig
from mlrl_learners.runs.files import CONFIG_FILE

__all__ = ["finish", "shared_weights"]


def finish(config: RunConfig, run_dir: Path) -> bool:
    """Train a run, or what is left of it; return whether it is finished.

    Args:
        config: The run; its last iteration writes a checkpoint.
        run_dir: Folder of the run.

    Returns:
        False if a signal ended it early; the next call continues it.
    """
    from mlrl_learners.cli.train import train_config

    if (run_dir / "checkpoints" / f"step_{config.train.iterations}").exists():
        return True
    resume = (run_dir / CONFIG_FILE).exists()
    return not train_config(config, run_dir, resume=resume, progress=False).interrupted


def shared_weights(run_dir: Path, step: int) -> Path:
    """Return the folder of the weights that all agents share, after an iteration."""
    return run_dir / "checkpoints" / f"step_{step}" / "learner" / "shared"
