"""Training of one method from one seed: scripted play, imitation, then the stages of the method.

Everything is a run of the ordinary training path in a folder of its own. Complete parts are kept
and interrupted runs are resumed, so that the process may be killed at any time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.games.model import save_model
from benchmarks.games.plans import Plan, Stage
from benchmarks.games.play import collect_play, texts_of
from benchmarks.shared.kept_runs import finish, keep_same, shared_weights
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig

__all__ = [
    "InterruptedRunError",
    "Snapshot",
    "planned_runs",
    "planned_updates",
    "snapshots",
    "train_method",
]

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
    _make_model(plan, seed, runs)
    for config, run_dir in planned_runs(plan, name, seed, runs):
        if not finish(config, run_dir):
            raise InterruptedRunError(str(run_dir))


def planned_runs(plan: Plan, name: str, seed: int, runs: Path) -> Iterator[tuple[RunConfig, Path]]:
    """Yield configuration and folder of imitation, then of every stage of a method."""
    method, config = plan.methods[name], _imitation(plan, seed, runs)
    run_dir = runs / f"sft-{seed}"
    yield config, run_dir
    for number, (stage, folder) in enumerate(_stages(plan, name, seed, runs)):
        model = shared_weights(run_dir, config.train.iterations)
        env = EnvConfig(plan.env_id, {**plan.env, **method.env, **stage.env})
        train = TrainConfig(
            iterations=stage.iterations,
            tasks_per_iteration=stage.tasks,
            seed=1000 * seed + number,
            checkpoint_every=_checkpoint_every(plan, stage),
            keep_checkpoints=stage.iterations,
        )
        options = merge_options(SAMPLING, _shared(plan), stage.options)
        learner = LearnerConfig(stage.learner, str(model), options)
        config, run_dir = RunConfig(env, learner, train=train), folder
        yield config, run_dir


def planned_updates(plan: Plan, name: str) -> list[int]:
    """Return the numbers of updates of a method after which its weights are measured."""
    return [each.update for each in snapshots(plan, name, 0, Path())]


def snapshots(plan: Plan, name: str, seed: int, runs: Path) -> Iterator[Snapshot]:
    """Yield the planned weights of a method in order, from those that imitation leaves."""
    yield Snapshot(0, shared_weights(runs / f"sft-{seed}", plan.sft))
    before = 0
    for stage, run_dir in _stages(plan, name, seed, runs):
        every = _checkpoint_every(plan, stage)
        for step in sorted({*range(every, stage.iterations, every), stage.iterations}):
            yield Snapshot(before + step, shared_weights(run_dir, step))
        before += stage.iterations


def _checkpoint_every(plan: Plan, stage: Stage) -> int:
    return max(1, stage.iterations // plan.points)


def _stages(plan: Plan, name: str, seed: int, runs: Path) -> Iterator[tuple[Stage, Path]]:
    number = 0
    for stage in plan.methods[name].stages:
        for _ in range(stage.rounds):
            number += 1
            yield replace(stage, rounds=1), runs / f"{name}-{seed}" / f"stage-{number}"


def _make_model(plan: Plan, seed: int, runs: Path) -> None:
    """Write the model of a seed, which reads the words of scripted play, if it is missing."""
    read = {"unread": plan.unread, "size": asdict(plan.size)}
    played = {"env": plan.env_id, "options": plan.env, "variants": plan.variants}
    runs.mkdir(parents=True, exist_ok=True)
    keep_same(runs / "made.json", {**played, "scripts": plan.scripts, "games": plan.games, **read})
    play, model = _play(plan, runs), runs / f"model-{seed}"
    if not (model / "config.json").exists():
        partial = model.with_suffix(".partial")
        save_model(partial, texts_of(play), plan.size, seed=seed, unread=plan.unread)
        partial.rename(model)


def _imitation(plan: Plan, seed: int, runs: Path) -> RunConfig:
    """Return the configuration of the run that learns the legal moves from scripted play."""
    file = {"examples": {"episodes": str(runs / PLAY_FILE)}}
    options = merge_options(SFT, _shared(plan), plan.sft_options, file)
    train = TrainConfig(
        iterations=plan.sft, seed=seed, checkpoint_every=plan.sft, keep_checkpoints=1
    )
    learner = LearnerConfig("sft", str(runs / f"model-{seed}"), options)
    return RunConfig(EnvConfig(plan.env_id, dict(plan.env)), learner, train=train)


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


def _shared(plan: Plan) -> Mapping[str, Any]:
    """Return the options that all runs of a plan have in common."""
    return {
        "team": {"share_weights": True},
        "sampling": {"max_new_tokens": plan.max_new_tokens},
    }
