"""Playing episodes into a file that learners are trained from.

One line an episode: where it comes from, its number there, and its transcript. A collection that
was killed is resumed after its last whole line. Batches are always the same and each samples from
its own seed, so that with an actor that can be seeded the file ends as if nothing had happened.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_learners.errors import RunDirError
from mlrl_learners.figures.means import team_return
from mlrl_learners.loggers import JsonlFile
from mlrl_learners.play.jobs import Job, batches, plan_jobs, play_jobs, sampling_from
from mlrl_learners.progress import progress_bar
from mlrl_learners.runs.records import episode_record
from mlrl_learners.seeding import derive_seed
from mlrl_learners.types import Actor, Episode, FailedEpisode

__all__ = ["CollectionResult", "collect"]


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """What a collection came to.

    Attributes:
        path: The file.
        episodes: Lines in the file, those before a resume included.
        played: Episodes that were played now.
        kept: Those of them that are in the file.
        failures: Episodes that infrastructure broke now; they are not in the file.
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
    split: str | None = "train",
    env_options: Mapping[str, Any] | None = None,
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
    """Let an actor play a split, and append its episodes to a JSONL file.

    Args:
        env_id: A registered environment.
        actor: Plays every agent.
        out: The file; created.
        actor_name: Who that is, for the file.
        split: Split to play; None for environments that have none.
        env_options: Arguments of `mlrl_envs.make`, the split apart.
        filter_reward: Keep only episodes whose team return is at least this; None for all.
        samples: Episodes of each task, at least 1.
        tasks: How many of the first tasks, or which by index; None for the whole split.
        seed: Decides the seed of every episode and batch.
        explore: Sample answers; greedy ones otherwise.
        token_ids: Keep what the model read and sampled token by token, with log-probabilities.
        batch_size: Episodes that are played side by side, at least 1.
        resume: Go on after the last episode in `out`, if there is one.
        progress: Show a progress bar.

    Raises:
        ConfigError: If a number is outside its range.
        RunDirError: If `out` cannot be written, holds episodes and `resume` is false, or holds
            those of another collection.
        InfraError: If infrastructure broke every episode.
    """
    options = {**(env_options or {}), **({} if split is None else {"split": split})}
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
    env = mlrl_envs.make(env_id, **options)
    try:
        num_tasks = getattr(env, "num_tasks", None)
        jobs = plan_jobs(num_tasks, tasks, samples=samples, seed=seed, batch_size=batch_size)
        file, done = _open(Path(out), source, resume=resume)
        before = sum(1 for _ in file.records())
        played = kept = 0
        failures: list[FailedEpisode] = []
        with progress_bar(total=len(jobs), description=env_id, enabled=progress) as bar:
            for batch in _numbered(jobs, batch_size):
                bar.update(len(batch))
                if batch[-1][0] < done:
                    continue
                for number, outcome in _play(env, env_id, actor, batch, seed=seed, explore=explore):
                    if number < done:  # it was written before the kill
                        continue
                    played += 1
                    if isinstance(outcome, FailedEpisode):
                        failures.append(outcome)
                    elif _earns(outcome, filter_reward):
                        record = episode_record(outcome, token_ids=token_ids)
                        file.append({"source": source, "number": number, **record})
                        kept += 1
    finally:
        env.close()
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
    """Play a batch, sampling from a seed of its own, and return outcomes by number."""
    numbers = [number for number, _ in batch]
    with sampling_from(actor, derive_seed(seed, numbers[0])):
        outcomes = play_jobs(env, env_id, actor, [job for _, job in batch], explore=explore)
    return list(zip(numbers, outcomes, strict=True))


def _earns(episode: Episode, filter_reward: float | None) -> bool:
    if filter_reward is None:
        return True
    return team_return(episode) >= filter_reward


def _open(path: Path, source: Mapping[str, Any], *, resume: bool) -> tuple[JsonlFile, int]:
    """Open the file; return it and the number of the first episode that may be missing."""
    if path.exists() and path.stat().st_size and not resume:
        raise RunDirError(f"{str(path)!r} is not empty; resume it or choose another file")
    file = JsonlFile(path)
    done = 0
    asked = json.loads(json.dumps(source))
    for record in file.records():
        stored = record.get("source")
        if not isinstance(stored, dict) or stored != asked:
            raise RunDirError(f"{str(path)!r} holds another collection: {_change(stored, asked)}")
        done = int(str(record["number"])) + 1
    return file, done


def _change(stored: object, asked: Mapping[str, Any]) -> str:
    """Say in a few words what differs first."""
    if not isinstance(stored, dict):
        return "its lines do not say where they come from"
    names = sorted(name for name in {*stored, *asked} if stored.get(name) != asked.get(name))
    return f"{names[0]} was {stored.get(names[0])!r}, now {asked.get(names[0])!r}"


def _numbered(jobs: Sequence[Job], size: int) -> Iterator[list[tuple[int, Job]]]:
    numbers = count()
    for batch in batches(jobs, size):
        yield [(next(numbers), job) for job in batch]
