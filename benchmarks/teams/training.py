"""Imitation of scripted play, then learning, each a run in a folder of its own."""

from pathlib import Path

from benchmarks.games.model import save_model
from benchmarks.games.play import texts_of
from benchmarks.kept_runs import finish, shared_weights
from benchmarks.teams.plans import Method, imitation_config, run_config
from benchmarks.teams.play import ONE_AGENT, TEAM, write_play
from benchmarks.teams.tasks import TeamTask

__all__ = ["run_folder", "train"]


def run_folder(runs: Path, method: str, seed: int) -> Path:
    """Return the folder of the run of a method."""
    return runs / f"{method}-{seed}"


def train(task: TeamTask, method: Method, name: str, seed: int, runs: Path) -> bool:
    """Train a method from a seed, or what is left of it.

    Args:
        task: What is learnt.
        method: Who learns it, and how.
        name: Name of the method, which its folder has.
        seed: Seed of the weights and of all sampling.
        runs: Folder of all runs of the task.

    Returns:
        False if a signal ended it early; the next call continues it.
    """
    model = _imitate(task, seed, runs, is_team=method.is_team)
    if model is None:
        return False
    return finish(run_config(task, method, str(model), seed), run_folder(runs, name, seed))


def _imitate(task: TeamTask, seed: int, runs: Path, *, is_team: bool) -> Path | None:
    """Return the folder of a model that imitates scripts; None if a signal ended it early."""
    write_play(task, runs)
    model = runs / f"model-{seed}"
    if not (model / "config.json").exists():
        partial = model.with_suffix(".partial")
        texts = [*texts_of(runs / TEAM), *texts_of(runs / ONE_AGENT)]
        save_model(partial, texts, task.size, seed=seed, unread=task.unread,
                   digits=task.digits)  # fmt: skip
        partial.rename(model)
    play = runs / (TEAM if is_team else ONE_AGENT)
    run_dir = runs / f"sft-{'team' if is_team else 'one-agent'}-{seed}"
    config = imitation_config(task, str(model), str(play), seed, is_team=is_team)
    if not finish(config, run_dir):
        return None
    if is_team:
        return shared_weights(run_dir, task.imitation)
    return _weights_of_one(run_dir, task.imitation)


def _weights_of_one(run_dir: Path, step: int) -> Path:
    """Return the folder of the weights of the one agent, after an iteration."""
    return run_dir / "checkpoints" / f"step_{step}" / "learner" / "team"
