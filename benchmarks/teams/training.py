"""Imitation of scripted play, then learning, each a run in a folder of its own."""

import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from benchmarks.games.model import save_model
from benchmarks.games.play import texts_of
from benchmarks.shared.kept_runs import finish, keep_same, shared_weights
from benchmarks.teams.plans import Method, imitation_config, run_config
from benchmarks.teams.play import ONE_AGENT, TEAM, write_play
from benchmarks.teams.tasks import TASKS, TeamTask
from mlrl_envs.errors import MlrlError
from mlrl_learners.runs.lock import hold_folder

__all__ = ["INTERRUPTED", "Job", "run_folder", "train", "train_all"]

INTERRUPTED = 130


class Job(NamedTuple):
    """A run to train.

    Attributes:
        task: Name of the task.
        name: Name of the method.
        method: Who learns it, and how.
        seed: Seed of the weights and of all sampling.
    """

    task: str
    name: str
    method: Method
    seed: int


def run_folder(runs: Path, method: str, seed: int) -> Path:
    """Return the folder of the run of a method."""
    return runs / f"{method}-{seed}"


def train_all(jobs: Iterable[Job], runs: Path) -> int:
    """Train runs, or what is left of them; a run that fails does not stop the others.

    Args:
        jobs: The runs, in order.
        runs: Folder with a folder for each task.

    Returns:
        0; 1 if a run failed, 130 if a signal ended one early.
    """
    status = 0
    for job in jobs:
        try:
            if not train(TASKS[job.task], job.method, job.name, job.seed, runs / job.task):
                print("interrupted: the same command continues", file=sys.stderr)
                return INTERRUPTED
        except MlrlError as error:
            where = f"{job.task}, {job.name}, seed {job.seed}"
            print(f"failed: {where}: {type(error).__name__}: {error}", file=sys.stderr)
            status = 1
    return status


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

    Raises:
        RunDirError: If another command trains this task in the same folder, or what is left was
            made in another way.
    """
    with hold_folder(runs):  # play and models are shared by the runs of a task
        model = _imitate(task, seed, runs, is_team=method.is_team)
    if model is None:
        return False
    return finish(run_config(task, method, str(model), seed), run_folder(runs, name, seed))


def _imitate(task: TeamTask, seed: int, runs: Path, *, is_team: bool) -> Path | None:
    """Return the folder of a model that imitates scripts; None if a signal ended it early."""
    read = {"unread": task.unread, "digits": task.digits, "size": asdict(task.size)}
    played = {"env": task.env_id, "options": task.env, "scripts": task.scripts, "games": task.games}
    played["imitated"] = task.imitated
    keep_same(runs / "made.json", {**played, **read})
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
