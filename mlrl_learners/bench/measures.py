"""Measures of games in a benchmark: figures of played games, NashConv, value against a script.

- `env.figures()` of every episode (welfare, score, deals), from the stored actions.
- In games with at most 250 information sets the actor is asked for a move in each of them, many
  times. Shares of moves are its policy, whose exact figures (`policy_figures`) are those of this
  estimate: noise in a policy raises its NashConv. Illegal answers count as random moves.
- In other zero-sum games the actor plays every seat against the best script.

An actor that must see the environment, such as the reference, is not asked. Measures of asking are
kept in the folder of the run, so that a run that is resumed asks once. What infrastructure breaks
is tried again; a measure of which anything is missing is neither kept nor reported.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlrl_envs.errors import InfraError, InvalidArgumentError
from mlrl_envs.games import information_sets, policy_figures, policy_of, questions
from mlrl_learners.bench.plan import ActorSource, content_hash
from mlrl_learners.bench.rescore import replayed
from mlrl_learners.bench.seats import SeatActor
from mlrl_learners.bench.suite import Suite
from mlrl_learners.bench.suite_run import PlayedEntry, RunSettings
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import JsonlFile, read_records
from mlrl_learners.play.jobs import Job, batches, plan_jobs, play_jobs, sampling_from
from mlrl_learners.runs.stored import Record, StoredFailure, decode_episode
from mlrl_learners.types import Actor, AgentID, Completion, Episode, Spectator

__all__ = [
    "MEASURES_FILE",
    "SuiteMeasures",
    "episode_measures",
    "is_game",
    "measure_suite",
    "policy_measures",
]

MEASURES_FILE = "measures.jsonl"
MAX_SETS = 250
MAX_ANSWERS = 2_000
MAX_SAMPLES = 64
VERSION = 2  # of what is kept; values of version 1 may lack episodes

Counts = list[list[int]]
"""For each information set the number of times that each of its moves was played."""


@dataclass(frozen=True, slots=True)
class SuiteMeasures:
    """Measures of the games of a suite.

    Attributes:
        of_entry: By name of the entry: `figures`, numbers by name, and if the actor was asked
            `moves`, for each actor (one, or one per seed) the counts of moves, and `samples` for
            each set.
        failures: By name of the entry, what broke; measures that ask the actor are then missing.
    """

    of_entry: Mapping[str, dict[str, Any]]
    failures: Mapping[str, Sequence[StoredFailure]]


class _MissingError(Exception):
    """Something that a measure needs has failed in every attempt.

    Args:
        failures: What failed.
    """

    def __init__(self, failures: Sequence[StoredFailure]) -> None:
        super().__init__(failures)
        self.failures = failures


def is_game(env: Any) -> bool:  # noqa: ANN401 - any PettingZoo parallel environment
    """Return whether an environment is a game with figures and scripted players."""
    return hasattr(env, "figures") and hasattr(env, "scripted_action")


def measure_suite(
    suite: Suite,
    source: ActorSource,
    played: Sequence[PlayedEntry],
    folder: Path,
    settings: RunSettings,
) -> SuiteMeasures:
    """Return the measures of each game of a suite whose episodes are complete.

    Args:
        suite: The suite.
        source: Makes the actor that is asked.
        played: Its episodes.
        folder: Folder of the run, which keeps what was asked; the caller holds it.
        settings: Settings of the run.
    """
    found: dict[str, dict[str, Any]] = {}
    failures: dict[str, Sequence[StoredFailure]] = {}
    for each in played:
        env = each.entry.make_env()
        try:
            if is_game(env) and not each.missing and each.episodes:
                figures = episode_measures(env, each.episodes)
                asked: dict[str, Any] = {"figures": {}}
                try:
                    asked = _asked(suite, source, each, env, folder, settings)
                except _MissingError as error:
                    failures[each.entry.name] = error.failures
                found[each.entry.name] = {**asked, "figures": {**figures, **asked["figures"]}}
        finally:
            env.close()
    return SuiteMeasures(found, failures)


def episode_measures(env: Any, records: Sequence[Record]) -> dict[str, float]:  # noqa: ANN401 - a game
    """Return the mean of each figure over the episodes that have it, from the stored actions."""
    values: dict[str, list[float]] = defaultdict(list)
    for game in replayed(env, [decode_episode(record) for record in records]):
        for name, value in game.figures().items():
            values[name].append(float(value))
    return {name: mean(found) for name, found in sorted(values.items())}


def policy_measures(env: Any, moves: Sequence[Counts], samples: int) -> dict[str, float]:  # noqa: ANN401 - a game
    """Return the figures of the policies with the given counts of moves, as means over policies."""
    asked = questions(env.family)
    values: dict[str, list[float]] = defaultdict(list)
    for counts in moves:
        shares = [[count / samples for count in row] for row in counts]
        figures = policy_figures(env.family.game, policy_of(asked, shares))
        for name, value in figures.items():
            values[name].append(value)
    return {name: mean(found) for name, found in values.items()}


def _asked(
    suite: Suite,
    source: ActorSource,
    played: PlayedEntry,
    env: Any,  # noqa: ANN401 - a game
    folder: Path,
    settings: RunSettings,
) -> dict[str, Any]:
    """Return what is found by asking the actor of each seed, equal actors once.

    Raises:
        _MissingError: If anything that is asked is missing.
    """
    path = folder / MEASURES_FILE
    known: dict[str, dict[str, Any]] = {str(each["key"]): each for each in read_records(path)}
    answers: dict[str, dict[str, Any]] = {}
    for seed in suite.seeds:
        entry = played.entry
        named: dict[str, Any] = {"entry": entry.name, "options": entry.env_options}
        named |= {"actor": dict(source.identity(seed, entry.env)), "tokens": entry.budget.tokens}
        named |= {"explore": settings.explore, "version": VERSION}
        key = content_hash({**named, **played.hashes})
        if key not in known:
            actor = source.make(
                played.agents, env_id=entry.env, tokens=entry.budget.tokens, seed=seed
            )
            known[key] = {"key": key, **_ask(played, env, actor, seed, settings)}
            JsonlFile(path).append(known[key])
        answers[key] = known[key]
    found = [each for each in answers.values() if each["samples"]]
    if found:
        samples, moves = found[0]["samples"], [each["moves"] for each in found]
        figures = policy_measures(env, moves, samples)
        return {"figures": figures, "moves": moves, "samples": samples}
    values = [each["value"] for each in answers.values() if each["value"] is not None]
    return {"figures": {f"vs_{_best(env)}": mean(values)} if values else {}}


def _ask(
    played: PlayedEntry,
    env: Any,  # noqa: ANN401 - a game
    actor: Actor,
    seed: int,
    settings: RunSettings,
) -> dict[str, Any]:
    """Return the counts of moves of an actor, or its value against the best script."""
    if isinstance(actor, Spectator):
        return {"samples": 0, "moves": [], "value": None}
    with sampling_from(actor, seed):
        if _num_sets(env):
            samples = max(1, min(MAX_SAMPLES, MAX_ANSWERS // _num_sets(env)))
            samples = samples if settings.explore else 1
            moves = _counts(env, actor, samples, settings)
            return {"samples": samples, "moves": moves, "value": None}
        value = _value(played, env, actor, seed, settings) if env.family.game.zero_sum else None
        return {"samples": 0, "moves": [], "value": value}


def _num_sets(env: Any) -> int:  # noqa: ANN401 - a game
    """Return the number of information sets; 0 if there are too many to ask for a move in each."""
    try:
        number = len(information_sets(env.family.game))
    except InvalidArgumentError:
        return 0
    return number if number <= MAX_SETS else 0


def _counts(env: Any, actor: Actor, samples: int, settings: RunSettings) -> Counts:  # noqa: ANN401
    """Ask for a move in every information set; return how often each legal move was named."""
    game, asked = env.family.game, questions(env.family)
    states = list(information_sets(game).values())
    counts: Counts = []
    for first in range(0, len(asked), settings.batch_size):
        batch = asked[first : first + settings.batch_size]
        prompts = [{each.agent: each.prompt} for each in batch]
        answers = _answers(actor, prompts, samples, settings)
        for question, state, answer in zip(batch, states[first:], answers, strict=False):
            named = [game.read(state, question.agent, each.text) for each in answer[question.agent]]
            counts.append([named.count(move) for move in question.moves])
    return counts


def _answers(
    actor: Actor, prompts: Sequence[Mapping[AgentID, str]], samples: int, settings: RunSettings
) -> Sequence[Mapping[AgentID, Sequence[Completion]]]:
    """Return the answers to some prompts, tried again if infrastructure fails.

    Raises:
        _MissingError: If every attempt fails.
    """
    failures: list[StoredFailure] = []
    for _ in range(settings.attempts):
        try:
            return actor.act(prompts, num_samples=samples, explore=settings.explore)
        except InfraError as error:
            failures = [_failure(type(error).__name__, str(error))]
    raise _MissingError(failures)


def _value(
    played: PlayedEntry,
    env: Any,  # noqa: ANN401 - a game
    actor: Actor,
    seed: int,
    settings: RunSettings,
) -> float:
    """Return the mean return of an actor against the best script, over seats and tasks.

    Raises:
        _MissingError: If an episode is missing.
    """
    returns: list[float] = []
    jobs = plan_jobs(env.num_tasks, played.entry.tasks, samples=1, seed=seed, batch_size=1)
    for seat in played.agents:
        seated = SeatActor(actor, seat, _best(env), seed)
        for batch in batches(jobs, settings.batch_size):
            episodes = _episodes(env, played.entry.env, seated, batch, settings)
            returns += [_return_of(each, seat) for each in episodes]
    return mean(returns)


def _episodes(
    env: Any,  # noqa: ANN401 - a game
    env_id: str,
    actor: Actor,
    jobs: Sequence[Job],
    settings: RunSettings,
) -> list[Episode]:
    """Play a batch; the episodes that infrastructure breaks are played again.

    Raises:
        _MissingError: If an episode breaks in every attempt.
    """
    played: dict[int, Episode] = {}
    failures: list[StoredFailure] = []
    for _ in range(settings.attempts):
        left = [number for number in range(len(jobs)) if number not in played]
        batch = [jobs[number] for number in left]
        outcomes = play_jobs(env, env_id, actor, batch, explore=settings.explore)
        found = dict(zip(left, outcomes, strict=True))
        played |= {n: each for n, each in found.items() if isinstance(each, Episode)}
        failures = [
            _failure(each.error, each.message) for each in outcomes if not isinstance(each, Episode)
        ]
        if not failures:
            return [played[number] for number in range(len(jobs))]
    raise _MissingError(failures)


def _failure(error: str, message: str) -> StoredFailure:
    return StoredFailure(f"measures: {message}", error)


def _return_of(episode: Episode, seat: AgentID) -> float:
    returns: Mapping[AgentID, float] = episode.returns
    return float(returns[seat])


def _best(env: Any) -> str:  # noqa: ANN401 - a game
    return str(list(env.family.game.scripts)[-1])
