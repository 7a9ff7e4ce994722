"""Playing of a suite into a resumable folder (`mlrl_learners.bench.suite_folder`).

A batch always holds the same episodes and samples from its own seed. An interrupted batch is
played again and only its missing episodes are written, so that with an actor that can be seeded an
interruption does not change the folder. A failed episode is retried at once, up to `attempts`
times, and again whenever the run is resumed; it is never scored.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_learners.bench.plan import ActorSource, Batch, plan_entry
from mlrl_learners.bench.suite import Entry, Suite
from mlrl_learners.bench.suite_folder import SuiteFolder
from mlrl_learners.errors import ConfigError
from mlrl_learners.play.jobs import play_jobs, sampling_from
from mlrl_learners.progress import progress_bar
from mlrl_learners.runs.stored import StoredFailure
from mlrl_learners.seeding import derive_seed
from mlrl_learners.types import Actor

__all__ = ["PlayedEntry", "RunSettings", "play_suite"]

MadeActor = tuple[Mapping[str, Any], Actor]
"""Identity of an actor, and the actor."""


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run that are not part of the suite.

    Attributes:
        explore: Sample answers; decode greedily if false.
        batch_size: Number of episodes played in parallel, at least 1.
        attempts: Attempts at an episode that infrastructure breaks, at least 1.
        progress: Show progress bars.
    """

    explore: bool = True
    batch_size: int = 32
    attempts: int = 3
    progress: bool = False

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If `batch_size` or `attempts` is below 1.
        """
        for name in ("batch_size", "attempts"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class PlayedEntry:
    """Episodes of one entry in the folder of a run.

    Attributes:
        entry: The entry.
        agents: Agents of its environment.
        hashes: Fingerprints of data and scorer, see `mlrl_envs.fingerprint`.
        planned: Number of episodes that the suite asks for.
        episodes: Their records, in the order of seeds, tasks and samples.
        left_out: Number of episodes whose task has no reference, with an actor that needs one.
        failures: Last failure of each episode that is still missing.
    """

    entry: Entry
    agents: tuple[str, ...]
    hashes: dict[str, str]
    planned: int
    episodes: tuple[dict[str, Any], ...]
    left_out: int
    failures: tuple[StoredFailure, ...]

    @property
    def missing(self) -> int:
        """Number of episodes that are neither played nor left out."""
        return self.planned - len(self.episodes) - self.left_out


def play_suite(
    suite: Suite, source: ActorSource, folder: Path | SuiteFolder, settings: RunSettings
) -> list[PlayedEntry]:
    """Play the missing episodes of a suite and return all episodes of the folder.

    Every episode is planned and the first actor is made before the folder is made. If all episodes
    of a batch fail, the rest of that entry is skipped.

    Args:
        suite: The suite.
        source: Makes the actor.
        folder: Folder of the run. A `SuiteFolder` stays locked until its own context ends.
        settings: Settings of the run.

    Raises:
        ConfigError: If an entry cannot be made, or an actor does not fit it.
        RunDirError: If another run holds the folder, or it cannot be written.
    """
    if isinstance(folder, Path):
        with SuiteFolder(folder) as stored:
            return play_suite(suite, source, stored, settings)
    envs = [entry.make_env() for entry in suite.entries]
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
        made = []
        if folder.is_new and plans[0]:
            batch, entry = plans[0][0], suite.entries[0]
            made.append(_make_actor(batch, entry, envs[0], source))
        folder.open()
        for entry, env, plan in zip(suite.entries, envs, plans, strict=True):
            _play_entry(entry, env, plan, source, folder, settings, made)
        return [
            _played(entry, env, plan, folder)
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
    stored: SuiteFolder,
    settings: RunSettings,
    made: list[MadeActor],
) -> None:
    """Play the missing episodes of an entry.

    Args:
        entry: The entry.
        env: Its environment.
        plan: Its episodes.
        source: Makes the actor.
        stored: Folder of the run.
        settings: Settings of the run.
        made: The actor of the first batch if it is made already; this function takes it out.
    """
    units = [unit for batch in plan for unit in batch.units]
    missing = len(stored.missing(units))
    bar = progress_bar(
        total=len(units),
        initial=len(units) - missing,
        description=entry.name,
        enabled=settings.progress and missing > 0,
    )
    with bar:
        for batch, actor in _with_actors(plan, entry, env, source, stored, made):
            before = len(stored.missing(batch.units))
            _play_batch(batch, entry, env, actor, stored, settings)
            left = len(stored.missing(batch.units))
            bar.update(before - left)
            if left == len(batch.units):  # a failure of all of them is likely to persist
                break


def _with_actors(
    plan: Sequence[Batch],
    entry: Entry,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    source: ActorSource,
    stored: SuiteFolder,
    ready: list[MadeActor],
) -> Iterator[tuple[Batch, Actor]]:
    """Yield each batch that has missing episodes, with its actor; one actor per identity."""
    made = ready.pop() if ready else None
    for batch in plan:
        if not stored.missing(batch.units):
            continue
        if made is None or made[0] != source.identity(batch.units[0].suite_seed, entry.env):
            made = None  # free one model before the next is loaded
            made = _make_actor(batch, entry, env, source)
        yield batch, made[1]


def _make_actor(
    batch: Batch,
    entry: Entry,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    source: ActorSource,
) -> MadeActor:
    seed, agents = batch.units[0].suite_seed, list(env.possible_agents)
    actor = source.make(agents, env_id=entry.env, tokens=entry.budget.tokens, seed=seed)
    return source.identity(seed, entry.env), actor


def _play_batch(
    batch: Batch,
    entry: Entry,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    actor: Actor,
    stored: SuiteFolder,
    settings: RunSettings,
) -> None:
    for _ in range(settings.attempts):
        missing = stored.missing(batch.units)
        if not missing:
            return
        tries = [stored.tries(unit) for unit in missing]
        # Failed episodes are retried alone. An interrupted batch is played as a whole, because its
        # samples depend on all of its episodes.
        units = missing if all(tries) else batch.units
        seed = derive_seed(batch.seed, max(tries)) if all(tries) else batch.seed
        started = time.perf_counter()
        with sampling_from(actor, seed):
            jobs = [unit.job for unit in units]
            outcomes = play_jobs(env, entry.env, actor, jobs, explore=settings.explore)
        seconds = round((time.perf_counter() - started) / len(units), 4)
        origin = {"env_id": entry.env, "env_options": entry.env_options}
        for unit, outcome in zip(units, outcomes, strict=True):
            stored.add(unit, outcome, source=origin, scorer=unit.scorer, seconds=seconds)


def _played(
    entry: Entry,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    plan: Sequence[Batch],
    stored: SuiteFolder,
) -> PlayedEntry:
    units = [unit for batch in plan for unit in batch.units]
    missing = stored.missing(units)
    return PlayedEntry(
        entry=entry,
        agents=tuple(env.possible_agents),
        hashes=mlrl_envs.fingerprint(env),
        planned=len(units),
        episodes=tuple(stored.episodes[u.key] for u in units if u.key in stored.episodes),
        left_out=sum(u.key not in stored.episodes and stored.is_left_out(u) for u in units),
        failures=tuple(stored.failures[u.key] for u in missing if u.key in stored.failures),
    )
