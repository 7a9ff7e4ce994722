"""Training of one method from one seed: scripted play, imitation, then the stages of the method.

Everything is a run of the ordinary training path in a folder of its own. Complete parts are kept
and interrupted runs are resumed, so that the process may be killed at any time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.games.model import save_model
from benchmarks.games.plans import Plan, Stage
from benchmarks.games.play import collect_play, texts_of
from benchmarks.kept_runs import finish, shared_weights
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig

__all__ = ["InterruptedRunError", "Snapshot", "snapshots", "train_method"]

PLAY_FILE = "play.jsonl"
SFT = {"examples": {"batch_size": 64}, "optimizer": {"lr": 2e-3, "schedule": "linear"}}
SAMPLING = {"sampling": {"temperature": 1.0, "top_p": 1.0}}


class InterruptedRunError(Exception):
    """A signal ended the training after a checkpoint; the same command continues it."""


@dataclass(frozen=True)
class Snapshot:
    """The weights of a method after some updates.

    Attributes:
        update: Number of updates of the method before, over all of its stages.
        folder: Folder of the model.
    """

    update: int
    folder: Path


def train_method(plan: Plan, name: str, seed: int, runs: Path) -> None:
    """Train a method from a seed, or what is left of it.

    Args:
        plan: The plan of the game.
        name: Name of the method.
        seed: Seed of the weights and of all sampling.
        runs: Folder of all runs of the game.

    Raises:
        InterruptedRunError: If a signal ended it early.
    """
    method = plan.methods[name]
    model = _imitate(plan, seed, runs)
    for number, (stage, run_dir) in enumerate(_stages(plan, name, seed, runs)):
        env = EnvConfig(plan.env_id, {**plan.env, **method.env, **stage.env})
        train = TrainConfig(
            iterations=stage.iterations,
            tasks_per_iteration=stage.tasks,
            seed=1000 * seed + number,
            checkpoint_every=max(1, stage.iterations // plan.points),
            keep_checkpoints=stage.iterations,
        )
        options = merge_options(SAMPLING, _shared(plan), stage.options)
        learner = LearnerConfig(stage.learner, str(model), options)
        model = _run(RunConfig(env, learner, train=train), run_dir)


def snapshots(plan: Plan, name: str, seed: int, runs: Path) -> Iterator[Snapshot]:
    """Yield the stored weights of a method in order, from those that imitation left."""
    yield Snapshot(0, shared_weights(runs / f"sft-{seed}", plan.sft))
    before = 0
    for stage, run_dir in _stages(plan, name, seed, runs):
        every = max(1, stage.iterations // plan.points)
        for step in sorted({*range(every, stage.iterations, every), stage.iterations}):
            folder = shared_weights(run_dir, step)
            if folder.exists():
                yield Snapshot(before + step, folder)
        before += stage.iterations


def _stages(plan: Plan, name: str, seed: int, runs: Path) -> Iterator[tuple[Stage, Path]]:
    number = 0
    for stage in plan.methods[name].stages:
        for _ in range(stage.rounds):
            number += 1
            yield replace(stage, rounds=1), runs / f"{name}-{seed}" / f"stage-{number}"


def _imitate(plan: Plan, seed: int, runs: Path) -> Path:
    """Return the folder of a model that has learnt the legal moves from scripted play."""
    play = _play(plan, runs)
    model = runs / f"model-{seed}"
    if not (model / "config.json").exists():
        partial = model.with_suffix(".partial")
        save_model(partial, texts_of(play), plan.size, seed=seed, unread=plan.unread)
        partial.rename(model)
    file = {"examples": {"episodes": str(play)}}
    options = merge_options(SFT, _shared(plan), plan.sft_options, file)
    train = TrainConfig(
        iterations=plan.sft, seed=seed, checkpoint_every=plan.sft, keep_checkpoints=1
    )
    learner = LearnerConfig("sft", str(model), options)
    return _run(RunConfig(EnvConfig(plan.env_id, dict(plan.env)), learner, train=train),
                runs / f"sft-{seed}")  # fmt: skip


def _play(plan: Plan, runs: Path) -> Path:
    """Return the file of the games of the scripts, those of all variants one after the other."""
    whole, partial = runs / PLAY_FILE, runs / "play.partial"
    if whole.exists():
        return whole
    text = ""
    for number, variant in enumerate(plan.variants):
        file = runs / f"play-{number}.jsonl"
        collect_play(
            file,
            env_id=plan.env_id,
            options={**plan.env, **variant},
            scripts=plan.scripts,
            games=plan.games,
        )
        text += file.read_text("utf-8")
    partial.write_text(text, "utf-8")
    return partial.rename(whole)


def _run(config: RunConfig, run_dir: Path) -> Path:
    """Train with a configuration, or continue, and return the folder of the last weights."""
    if not finish(config, run_dir):
        raise InterruptedRunError(str(run_dir))
    return shared_weights(run_dir, config.train.iterations)


def _shared(plan: Plan) -> Mapping[str, Any]:
    """Return the options that all runs of a plan have in common."""
    return {
        "team": {"share_weights": True},
        "sampling": {"max_new_tokens": plan.max_new_tokens},
    }
