"""Playing a suite into a folder: episodes as they are done, failures beside them.

`episodes.jsonl` has a line an episode, `failures.jsonl` a line a try that infrastructure broke.
Lines are whole or absent. A batch always holds the same episodes and samples from its own seed: one
that was interrupted is played again and what is missing of it is written, so that with an actor
that can be seeded the folder ends as if nothing had happened. Episodes that failed are tried again
at once, `attempts` times, and again whenever the run is resumed; they are never scored.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_learners.bench.plan import ActorSource, Batch, Unit, plan_entry
from mlrl_learners.bench.suite import Entry, Suite
from mlrl_learners.errors import ConfigError, NoReferenceError
from mlrl_learners.loggers import JsonlFile
from mlrl_learners.play.jobs import play_jobs, sampling_from
from mlrl_learners.progress import progress_bar
from mlrl_learners.runs.records import episode_record
from mlrl_learners.seeding import derive_seed
from mlrl_learners.types import Actor, Episode, FailedEpisode

__all__ = ["EPISODES", "FAILURES", "Played", "RunSettings", "play_suite"]

EPISODES, FAILURES = "episodes.jsonl", "failures.jsonl"
NO_REFERENCE = NoReferenceError.__name__


@dataclass(frozen=True)
class RunSettings:
    """How a suite is played; part of no score.

    Attributes:
        explore: Sample answers; greedy ones otherwise.
        batch_size: Episodes that are played side by side, at least 1.
        attempts: Most tries of an episode that infrastructure breaks, at least 1.
        progress: Show progress bars.
    """

    explore: bool = True
    batch_size: int = 32
    attempts: int = 3
    progress: bool = False

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a number is below 1.
        """
        for name in ("batch_size", "attempts"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Played:
    """What the folder holds of an entry.

    Attributes:
        entry: The entry.
        agents: Who acts in it.
        hashes: Of data and scorer, see `mlrl_envs.fingerprint`.
        planned: Episodes that were asked for.
        episodes: Their records, in the order of seeds, tasks and samples.
        left_out: Episodes whose task has no reference, played by an actor that needs one.
        failures: The last failure of each episode that is still missing.
    """

    entry: Entry
    agents: tuple[str, ...]
    hashes: dict[str, str]
    planned: int
    episodes: tuple[dict[str, Any], ...]
    left_out: int
    failures: tuple[dict[str, Any], ...]

    @property
    def missing(self) -> int:
        """Episodes that are neither played nor left out."""
        return self.planned - len(self.episodes) - self.left_out


class _Folder:
    """What has been played, by key."""

    def __init__(self, path: Path) -> None:
        self._episodes = JsonlFile(path / EPISODES)
        self._failures = JsonlFile(path / FAILURES)
        self.episodes: dict[str, dict[str, Any]] = {}
        self.failures: dict[str, dict[str, Any]] = {}
        for record in self._episodes.records():
            self.episodes.setdefault(str(record["key"]), record)
        for record in self._failures.records():
            self.failures[str(record["key"])] = record

    def add(self, unit: Unit, outcome: Episode | FailedEpisode, **more: object) -> None:
        """Write an outcome, unless its episode is there already."""
        if unit.key in self.episodes:
            return
        named = {"key": unit.key, "entry": unit.entry, "suite_seed": unit.suite_seed, **more}
        named["task_index"] = unit.job.options.get("task_index")
        if isinstance(outcome, Episode):
            record = {**named, **episode_record(outcome)}
            self._episodes.append(record)
            self.episodes[unit.key] = record
            return
        tries = int(self.failures.get(unit.key, {}).get("tries", 0)) + 1
        failure = {"tries": tries, "error": outcome.error, "message": outcome.message}
        record = {**named, **failure}
        self._failures.append(record)
        self.failures[unit.key] = record

    def is_left_out(self, unit: Unit) -> bool:
        """Tell whether a unit has no reference to be played from."""
        return self.failures.get(unit.key, {}).get("error") == NO_REFERENCE

    def missing(self, units: Sequence[Unit]) -> list[Unit]:
        """Return the units that are neither played nor left out."""
        return [u for u in units if u.key not in self.episodes and not self.is_left_out(u)]


def play_suite(
    suite: Suite, source: ActorSource, folder: Path, settings: RunSettings
) -> list[Played]:
    """Play what is missing of a suite in a folder, and return all that is there.

    Every environment is made before anything is played. Where all episodes of a batch fail, the
    rest of that entry is not tried.

    Raises:
        ConfigError: If an entry cannot be made, or an actor does not fit it.
        RunDirError: If the folder cannot be written.
    """
    envs = [entry.make_env() for entry in suite.entries]
    stored = _Folder(folder)
    try:
        plans = [
            plan_entry(
                suite,
                entry,
                env,
                source,
                explore=settings.explore,
                batch_size=settings.batch_size,
            )
            for entry, env in zip(suite.entries, envs, strict=True)
        ]
        for entry, env, plan in zip(suite.entries, envs, plans, strict=True):
            _play_entry(entry, env, plan, source, stored, settings)
        return [
            _played(entry, env, plan, stored)
            for entry, env, plan in zip(suite.entries, envs, plans, strict=True)
        ]
    finally:
        for env in envs:
            env.close()


def _play_entry(
    entry: Entry,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    plan: Sequence[Batch],
    source: ActorSource,
    stored: _Folder,
    settings: RunSettings,
) -> None:
    units = [unit for batch in plan for unit in batch.units]
    missing = len(stored.missing(units))
    bar = progress_bar(
        total=len(units),
        initial=len(units) - missing,
        description=entry.name,
        enabled=settings.progress and missing > 0,
    )
    with bar:
        for batch, actor in _with_actors(plan, entry, env, source, stored):
            before = len(stored.missing(batch.units))
            _play_batch(batch, entry, env, actor, stored, settings)
            left = len(stored.missing(batch.units))
            bar.update(before - left)
            if left == len(batch.units):  # what is down for all of them is down for the next ones
                break


def _with_actors(
    plan: Sequence[Batch],
    entry: Entry,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    source: ActorSource,
    stored: _Folder,
) -> Iterator[tuple[Batch, Actor]]:
    """Yield the batches that have something missing, with who plays; one actor an identity."""
    made: tuple[Mapping[str, Any], Actor] | None = None
    for batch in plan:
        if not stored.missing(batch.units):
            continue
        seed = batch.units[0].suite_seed
        identity = source.identity(seed)
        if made is None or made[0] != identity:
            agents = list(env.possible_agents)
            made = None  # let go of one model before the next is loaded
            made = (identity, source.make(agents, tokens=entry.budget.tokens, seed=seed))
        yield batch, made[1]


def _play_batch(
    batch: Batch,
    entry: Entry,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    actor: Actor,
    stored: _Folder,
    settings: RunSettings,
) -> None:
    for _ in range(settings.attempts):
        missing = stored.missing(batch.units)
        if not missing:
            return
        tries = [int(stored.failures.get(u.key, {}).get("tries", 0)) for u in missing]
        # What failed is tried by itself; what was interrupted needs its neighbours to be the same.
        units = missing if all(tries) else batch.units
        seed = derive_seed(batch.seed, max(tries)) if all(tries) else batch.seed
        started = time.perf_counter()
        with sampling_from(actor, seed):
            jobs = [unit.job for unit in units]
            outcomes = play_jobs(env, entry.env, actor, jobs, explore=settings.explore)
        seconds = round((time.perf_counter() - started) / len(units), 4)
        scorer = mlrl_envs.fingerprint(env).get("scorer", "")
        origin = {"env_id": entry.env, "env_options": entry.env_options}
        for unit, outcome in zip(units, outcomes, strict=True):
            stored.add(unit, outcome, source=origin, scorer=scorer, seconds=seconds)


def _played(
    entry: Entry,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    plan: Sequence[Batch],
    stored: _Folder,
) -> Played:
    units = [unit for batch in plan for unit in batch.units]
    missing = stored.missing(units)
    return Played(
        entry=entry,
        agents=tuple(env.possible_agents),
        hashes=mlrl_envs.fingerprint(env),
        planned=len(units),
        episodes=tuple(stored.episodes[u.key] for u in units if u.key in stored.episodes),
        left_out=sum(u.key not in stored.episodes and stored.is_left_out(u) for u in units),
        failures=tuple(stored.failures[u.key] for u in missing if u.key in stored.failures),
    )
