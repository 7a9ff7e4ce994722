"""Cross-play: every actor against every other in every seat.

In a match one actor plays one agent, and another actor all other agents; with two agents these are
all assignments of the actors to the seats. Matches share their tasks and seeds. They are played
into one folder like a suite (`mlrl_learners.bench.suite_run`), so that the same call resumes.

- matrix: mean return of the actor of a row in one seat, with that of a column in the others; the
  mean over the seats
- Elo: an episode is won if the actor's return is above the mean of the others', and drawn if equal
- NashConv: of an actor in all seats, where the game and the actor have an exact measure

Intervals are 95 % percentile bootstraps over tasks, with the same tasks in all matches of a draw.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mlrl_learners.actors.match import MatchActor
from mlrl_learners.bench.exact_policies import has_exact_measure, nash_conv_of
from mlrl_learners.bench.plan import ActorSource
from mlrl_learners.bench.suite import Entry, Suite
from mlrl_learners.bench.suite_folder import SuiteFolder
from mlrl_learners.bench.suite_run import PlayedEntry, RunSettings, play_suite
from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.bootstrap import LEVEL, RESAMPLES
from mlrl_learners.figures.elo import elo_ratings
from mlrl_learners.runs.provenance import result_provenance
from mlrl_learners.runs.stored import decode_episode
from mlrl_learners.types import Actor, AgentID

__all__ = ["NamedSource", "crossplay", "crossplay_suite", "matches_of"]

FORMAT = "mlrl-crossplay/1"
CACHED_ACTORS = 2
Match = tuple[int, ...]
"""The number of the actor of each agent."""
Array = NDArray[np.float64]


class NamedSource(ActorSource, Protocol):
    """Source of an actor with a name and a description."""

    name: str

    def describe(self, seeds: Sequence[int], env_ids: Sequence[str]) -> dict[str, Any]:
        """Return a description of the actor as JSON values: what it is, and its options."""
        ...


def crossplay_suite(entry: Entry, seeds: Sequence[int]) -> Suite:
    """Return the suite that every match plays."""
    return Suite("crossplay", 0, "all actors against each other", tuple(seeds), (entry,))


def matches_of(num_actors: int, num_agents: int) -> list[Match]:
    """Return all matches, those of the same two actors in a row."""
    found: dict[Match, None] = {}
    for one, other in itertools.combinations_with_replacement(range(num_actors), 2):
        for first, second in ((one, other), (other, one)):
            for seat in range(num_agents):
                found[_match(first, second, seat, num_agents)] = None
    return list(found)


def crossplay(
    suite: Suite, sources: Sequence[NamedSource], folder: Path, settings: RunSettings
) -> dict[str, Any]:
    """Play the missing episodes of all matches, and return the result as JSON values.

    The result has the descriptions of the actors in their order, the hashes of data and scorers,
    and versions, commit and hardware.

    Raises:
        ConfigError: If there are fewer than two actors, two of the same name, or fewer than two
            agents; or if an actor does not fit the environment.
        RunDirError: If another run holds the folder, or it cannot be written.
    """
    _check_names([source.name for source in sources])
    entry = suite.entries[0]
    described = [source.describe(suite.seeds, [entry.env]) for source in sources]
    env = entry.make_env()
    try:
        agents = tuple(env.possible_agents)
        if len(agents) < 2:
            raise ConfigError(f"crossplay takes at least 2 agents, {entry.env} has 1")
        cache = _Actors(sources)
        exact = _nash_convs(sources, cache, env, suite) if has_exact_measure(env) else {}
    finally:
        env.close()
    with SuiteFolder(folder) as stored:
        played = {
            match: play_suite(suite, _MatchSource(match, agents, sources, cache), stored, settings)[
                0
            ]
            for match in matches_of(len(sources), len(agents))
        }
    result = _result(suite, [source.name for source in sources], agents, played, exact, settings)
    return {**result, "descriptions": described, **_origin(list(played.values()))}


@dataclass
class _Actors:
    """The actors that were made last, so that two models are in memory at most.

    Attributes:
        sources: Source of each actor.
        made: Actors by number, token limit and seed; all of one environment.
    """

    sources: Sequence[NamedSource]
    made: dict[tuple[int, int, int], Actor] = field(default_factory=dict)

    def get(
        self, number: int, agents: Sequence[AgentID], *, env_id: str, tokens: int, seed: int
    ) -> Actor:
        """Return an actor, made if needed."""
        key = (number, tokens, seed)
        actor = self.made.pop(key, None)
        while actor is None and len(self.made) >= CACHED_ACTORS:
            self.made.pop(next(iter(self.made)))  # free one model before the next is loaded
        if actor is None:
            source = self.sources[number]
            actor = source.make(agents, env_id=env_id, tokens=tokens, seed=seed)
        self.made[key] = actor
        return actor


@dataclass(frozen=True)
class _MatchSource:
    """Source of the players of a match."""

    match: Match
    agents: tuple[AgentID, ...]
    sources: Sequence[NamedSource]
    actors: _Actors

    def identity(self, seed: int, env_id: str) -> Mapping[str, Any]:
        """Return the identities of all players."""
        players = zip(self.agents, self.match, strict=True)
        return {"seats": {agent: self.sources[i].identity(seed, env_id) for agent, i in players}}

    def make(self, agents: Sequence[AgentID], *, env_id: str, tokens: int, seed: int) -> Actor:
        """Make the players."""
        made = {
            i: self.actors.get(i, agents, env_id=env_id, tokens=tokens, seed=seed)
            for i in set(self.match)
        }
        return MatchActor({agent: made[i] for agent, i in zip(agents, self.match, strict=True)})


def _match(one: int, other: int, seat: int, num_agents: int) -> Match:
    """Return the match in which an actor plays one seat, and another the rest."""
    return tuple(one if number == seat else other for number in range(num_agents))


def _check_names(names: Sequence[str]) -> None:
    if len(names) < 2:
        raise ConfigError(f"crossplay takes at least 2 actors, got {len(names)}")
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"the actor {name!r} appears twice")


def _nash_convs(
    sources: Sequence[NamedSource],
    cache: _Actors,
    env: Any,  # noqa: ANN401 - a game
    suite: Suite,
) -> dict[str, float | None]:
    agents, entry = list(env.possible_agents), suite.entries[0]

    def player(number: int) -> Actor:
        tokens, seed = entry.budget.tokens, suite.seeds[0]
        return cache.get(number, agents, env_id=entry.env, tokens=tokens, seed=seed)

    return {each.name: nash_conv_of(player(i), env) for i, each in enumerate(sources)}


def _result(
    suite: Suite,
    names: Sequence[str],
    agents: Sequence[AgentID],
    played: Mapping[Match, PlayedEntry],
    exact: Mapping[str, float | None],
    settings: RunSettings,
) -> dict[str, Any]:
    """Return all figures of the episodes."""
    returns = {match: _returns_by_task(entry, agents) for match, entry in played.items()}
    tasks = sorted(set.intersection(*(set(found) for found in returns.values())))
    result: dict[str, Any] = {
        "format": FORMAT,
        "suite": {**suite.as_dict(), "hash": suite.hash},
        "actors": list(names),
        "agents": list(agents),
        "tasks": len(tasks),
        "complete": all(entry.missing == 0 for entry in played.values()),
        "settings": {"explore": settings.explore, "batch_size": settings.batch_size},
        "matches": [_match_record(match, played[match], names, agents) for match in played],
        "nash_conv": {name: exact.get(name) for name in names},
    }
    if not tasks:
        return {**result, "matrix": None, "elo": None}
    values, points = _tables(returns, tasks, len(names), len(agents))
    # [R, T]: how often each resample draws each task, as a share.
    rng = np.random.default_rng(0)
    shares = rng.multinomial(len(tasks), [1 / len(tasks)] * len(tasks), RESAMPLES) / len(tasks)
    games = len(tasks) * len(agents)
    ratings = elo_ratings(points.mean(axis=-1) * games)
    drawn = elo_ratings(np.moveaxis(points @ shares.T, -1, 0) * games)
    has_intervals = len(tasks) > 1
    return {
        **result,
        "matrix": {
            "mean": values.mean(axis=-1).tolist(),
            **(_bounds(values @ shares.T, -1) if has_intervals else {"low": None, "high": None}),
        },
        "elo": {
            "mean": ratings.tolist(),
            **(_bounds(drawn, 0) if has_intervals else {"low": None, "high": None}),
        },
    }


def _origin(played: Sequence[PlayedEntry]) -> dict[str, Any]:
    """Return the hashes of data and scorers, and the provenance of a result."""
    episodes = [decode_episode(record) for entry in played for record in entry.episodes]
    return {
        "data": played[0].hashes.get("data", ""),
        "scorers": sorted({episode.scorer for episode in episodes}),
        "provenance": result_provenance(),
    }


def _returns_by_task(entry: PlayedEntry, agents: Sequence[AgentID]) -> dict[str, Array]:
    """Return the returns `[E, N]` of the episodes of each task."""
    found: dict[str, list[list[float]]] = {}
    for record in entry.episodes:
        episode = decode_episode(record)
        row = [float(episode.returns.get(agent, 0.0)) for agent in agents]
        found.setdefault(episode.task_id or f"seed {episode.seed}", []).append(row)
    return {task: np.asarray(rows) for task, rows in found.items()}


def _tables(
    returns: Mapping[Match, Mapping[str, Array]],
    tasks: Sequence[str],
    num_actors: int,
    num_agents: int,
) -> tuple[Array, Array]:
    """Return the mean returns and the points of each actor against each other, `[K, K, T]`."""
    values = np.zeros((num_actors, num_actors, len(tasks)))
    points = np.zeros_like(values)
    for one, other in itertools.product(range(num_actors), repeat=2):
        for seat in range(num_agents):
            played = returns[_match(one, other, seat, num_agents)]
            for number, task in enumerate(tasks):
                rows = played[task]
                rest = np.delete(rows, seat, axis=1).mean(axis=1)
                gap = rows[:, seat] - rest
                score = np.where(np.abs(gap) < 1e-9, 0.5, gap > 0).mean()
                values[one, other, number] += rows[:, seat].mean() / num_agents
                points[one, other, number] += score / num_agents
    # With more than two agents, the two directions are different matches: both count half.
    return values, (points + 1 - np.swapaxes(points, 0, 1)) / 2


def _bounds(drawn: Array, axis: int) -> dict[str, Any]:
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=axis)
    return {"low": low.tolist(), "high": high.tolist()}


def _match_record(
    match: Match, entry: PlayedEntry, names: Sequence[str], agents: Sequence[AgentID]
) -> dict[str, Any]:
    rows = [decode_episode(record).returns for record in entry.episodes]
    means = {
        agent: float(np.mean([row.get(agent, 0.0) for row in rows])) if rows else None
        for agent in agents
    }
    return {
        "seats": {agent: names[number] for agent, number in zip(agents, match, strict=True)},
        "mean": means,
        "episodes": len(rows),
        "missing": entry.missing,
        "failures": [failure.message for failure in entry.failures][:1],
    }
