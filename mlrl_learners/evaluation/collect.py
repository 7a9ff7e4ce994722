"""Collection of episodes into a JSONL file, as training data.

Each line holds the arguments of the collection, the number of the episode and the episode. A killed
collection is resumed after its last whole line. Batches are the same in every attempt and each
samples from its own seed, so that with an actor that can be seeded an interruption does not change
the file.
"""

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_envs.serve import remote_id
from mlrl_learners.config.env import portable_options, stored_options, with_default_split
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.figures.means import team_return
from mlrl_learners.loggers import JsonlFile
from mlrl_learners.play.jobs import (
    Job,
    batches,
    chosen_tasks,
    plan_jobs,
    play_jobs,
    sampling_from,
)
from mlrl_learners.progress import progress_bar
from mlrl_learners.runs.labels import collection_of
from mlrl_learners.runs.lock import hold_file
from mlrl_learners.runs.records import episode_record
from mlrl_learners.seeding import derive_seed
from mlrl_learners.types import Actor, Episode, FailedEpisode
from mlrl_learners.types.contract import check_actor

__all__ = ["TRAINING_SPLIT", "CollectionResult", "collect"]

TRAINING_SPLIT = "train"


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """Outcome of a collection.

    Attributes:
        path: The file.
        episodes: Number of lines in the file, including those from before a resume.
        played: Number of episodes played by this call.
        kept: Number of those that were written.
        failures: Episodes of this call that infrastructure broke; they are not in the file.
    """

    path: Path
    episodes: int
    played: int
    kept: int
    failures: tuple[FailedEpisode, ...]


def collect(
    *,
    env_id: str,
    actor: Actor,
    out: str | Path,
    actor_name: str = "",
    split: str | None = TRAINING_SPLIT,
    env_options: Mapping[str, Any] | None = None,
    env_server: str | Sequence[str] | None = None,
    filter_reward: float | None = None,
    samples: int = 1,
    tasks: int | Sequence[int] | None = None,
    seed: int = 0,
    explore: bool = True,
    token_ids: bool = False,
    batch_size: int = 32,
    resume: bool = False,
    progress: bool = False,
) -> CollectionResult:
    """Play a split with an actor and append the episodes to a JSONL file.

    Args:
        env_id: A registered environment.
        actor: Plays every agent.
        out: The file; created if it is missing.
        actor_name: Name of the actor in the file; its class by default.
        split: Split to play; None, or the default, for environments without splits.
        env_options: Arguments of `mlrl_envs.make` other than the split; files of workflows and
            relative paths of Python files are written so that the file can be read anywhere.
        env_server: Environment servers that play it, `host:port`; None for this process.
        filter_reward: Write only episodes whose team return is at least this finite number; None
            for all.
        samples: Episodes per task, at least 1.
        tasks: Number of tasks, counted from the first, or their indices; None for all, and for
            16 episodes by seed in environments without `num_tasks`.
        seed: Seed from which the seeds of episodes and batches are derived.
        explore: Sample answers; decode greedily if false.
        token_ids: Also write prompt ids, sampled token ids and log-probabilities.
        batch_size: Number of episodes played in parallel, at least 1.
        resume: Continue after the last episode in `out`, if there is one.
        progress: Show a progress bar.

    Raises:
        ConfigError: If `filter_reward`, `samples`, `tasks` or `batch_size` is out of range.
        RunDirError: If `out` cannot be written, is written by another process, holds episodes and
            `resume` is false, or holds episodes of another collection.
        ContractError: If `actor` has no method `act`.
        InfraError: If infrastructure broke every episode.
    """
    check_actor(actor)
    if filter_reward is not None and not math.isfinite(filter_reward):
        raise ConfigError(f"filter_reward must be finite, got {filter_reward}")
    options, location = portable_options(env_id, env_options or {}), remote_id(env_id, env_server)
    if split is not None:
        options = with_default_split(location, {**options, "split": split}, TRAINING_SPLIT)
    source = {
        "env_id": env_id,
        "env_options": options,
        "actor": actor_name or type(actor).__name__,
        "filter_reward": filter_reward,
        "samples": samples,
        "tasks": list(tasks) if isinstance(tasks, Sequence) else tasks,
        "seed": seed,
        "explore": explore,
        **({"token_ids": True} if token_ids else {}),
        "batch_size": batch_size,
    }
    env = mlrl_envs.make(location, **options)
    with contextlib.ExitStack() as stack:
        stack.callback(env.close)
        num_tasks = getattr(env, "num_tasks", None)
        chosen = chosen_tasks(num_tasks, tasks)
        jobs = plan_jobs(num_tasks, chosen, samples=samples, seed=seed, batch_size=batch_size)
        stack.enter_context(hold_file(Path(out)))
        file, done = _open(Path(out), source, resume=resume)
        before = sum(1 for _ in file.records())
        played = kept = 0
        failures: list[FailedEpisode] = []
        with progress_bar(total=len(jobs), description=env_id, enabled=progress) as bar:
            for batch in _numbered(jobs, batch_size):
                bar.update(len(batch))
                if batch[-1][0] < done:
                    continue
                outcomes = _play(env, env_id, actor, batch, seed=seed, explore=explore)
                # Of an interrupted batch the first episodes may have been written already.
                new = outcomes[max(0, done - batch[0][0]) :]
                played += len(new)
                kept += _write(file, new, source, filter_reward, token_ids=token_ids)
                failures += [each for _, each in new if isinstance(each, FailedEpisode)]
    if failures and len(failures) == played:
        raise InfraError(f"every episode of {env_id} failed: {failures[0].message}")
    return CollectionResult(file.path, before + kept, played, kept, tuple(failures))


def _play(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    env_id: str,
    actor: Actor,
    batch: Sequence[tuple[int, Job]],
    *,
    seed: int,
    explore: bool,
) -> list[tuple[int, Episode | FailedEpisode]]:
    """Play a batch with its own sampling seed; return each outcome with its number."""
    numbers = [number for number, _ in batch]
    with sampling_from(actor, derive_seed(seed, numbers[0])):
        outcomes = play_jobs(env, env_id, actor, [job for _, job in batch], explore=explore)
    return list(zip(numbers, outcomes, strict=True))


def _write(
    file: JsonlFile,
    outcomes: Sequence[tuple[int, Episode | FailedEpisode]],
    source: Mapping[str, Any],
    filter_reward: float | None,
    *,
    token_ids: bool,
) -> int:
    """Write the episodes that earn enough, each with its number, and return how many these are."""
    kept = 0
    for number, outcome in outcomes:
        if not isinstance(outcome, FailedEpisode) and _earns(outcome, filter_reward):
            labels = {"source": source, "number": number}
            file.append(episode_record(outcome, token_ids=token_ids, **labels))
            kept += 1
    return kept


def _earns(episode: Episode, filter_reward: float | None) -> bool:
    if filter_reward is None:
        return True
    return team_return(episode) >= filter_reward


def _open(path: Path, source: Mapping[str, Any], *, resume: bool) -> tuple[JsonlFile, int]:
    """Open the file; return it and the number of the first episode that is not in it."""
    if path.exists() and path.stat().st_size and not resume:
        raise RunDirError(f"{str(path)!r} is not empty; resume it or choose another file")
    file = JsonlFile(path)
    done = 0
    asked = same = json.loads(json.dumps(source))
    for record in file.records():
        try:
            stored, number = collection_of(record)
        except (KeyError, ValueError) as error:
            message = f"{str(path)!r} has an episode that is not of a collection: {error!r}"
            raise RunDirError(message) from error
        if stored != same:  # earlier versions stored relative paths
            if (found := _portable(stored)) != asked:
                change = _change(found, asked)
                raise RunDirError(f"{str(path)!r} holds another collection: {change}")
            same = stored
        done = number + 1
    return file, done


def _portable(stored: object) -> object:
    """Return the description of a collection with the options that `collect` writes today."""
    options = stored.get("env_options") if isinstance(stored, dict) else None
    if not isinstance(stored, dict) or not isinstance(options, dict):
        return stored
    found = {**stored, "env_options": stored_options(str(stored.get("env_id")), options)}
    return json.loads(json.dumps(found))


def _change(stored: object, asked: Mapping[str, Any]) -> str:
    """Describe the first difference."""
    if not isinstance(stored, dict):
        return "its lines have no description of a collection"
    names = sorted(name for name in {*stored, *asked} if stored.get(name) != asked.get(name))
    return f"{names[0]} was {stored.get(names[0])!r}, now {asked.get(names[0])!r}"


def _numbered(jobs: Sequence[Job], size: int) -> Iterator[list[tuple[int, Job]]]:
    numbers = count()
    for batch in batches(jobs, size):
        yield [(next(numbers), job) for job in batch]
