"""Check of a submitted result: schema, arithmetic and a sample of its scores.

Nothing in the submitted file decides what is executed: environments are made from the entries of
the local suite, and the sample is drawn by the checker.
"""

import dataclasses
import math
import random
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_envs.errors import MlrlError
from mlrl_envs.workflows import SHAPES
from mlrl_learners.actors.workflow import drafts_of
from mlrl_learners.bench.measures import episode_measures, is_game, policy_measures
from mlrl_learners.bench.rescore import rescore
from mlrl_learners.bench.results import (
    figures_of,
    overall_of,
    read_result,
    read_transcripts,
)
from mlrl_learners.bench.suite import (
    Entry,
    Suite,
    has_common_scale,
    load_suite,
    suite_files,
    suite_of,
)
from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.means import mean
from mlrl_learners.play.jobs import plan_jobs
from mlrl_learners.runs.labels import entry_of
from mlrl_learners.runs.stored import Record, StoredEpisode, decode_episode

__all__ = ["check_submission"]

ROUNDING = 1e-6
PLANNED = frozenset(
    (
        *("name", "env", "split", "agents", "options", "budget"),
        *("data", "scorers", "planned", "left_out", "missing", "measures"),
    )
)
Result = Mapping[str, Any]


def check_submission(path: Path, *, sample: int = 20, seed: int | None = None) -> list[str]:
    """Return the problems of a result; an empty list if it can be accepted.

    The suite must equal the local suite of that name, the episodes must be those that the suite
    asks for, and every figure must follow from them. `sample` episodes of each entry are rescored,
    or all of them if the result was scored by other code.

    Args:
        path: The result; its transcripts are in the same folder.
        sample: Number of episodes of each entry that are rescored, at least 0.
        seed: Seed of the sample, at least 0; None draws it, so that a submitter cannot know it.

    Raises:
        ConfigError: If the file is not a result, or its transcripts are missing or changed.
        InfraError: If infrastructure fails.
    """
    seed = secrets.randbits(32) if seed is None else seed
    result = read_result(path)
    if problems := list(_suite_problems(result["suite"])):
        return problems
    episodes = read_transcripts(path, result)
    suite = load_suite(result["suite"]["name"])
    names = [entry["name"] for entry in result["entries"]]
    if names != [entry["name"] for entry in result["suite"]["entries"]]:
        return ["the entries are not those of its suite"]
    strange = {entry_of(episode) for episode in episodes} - set(names)
    problems += [f"unknown entry {name}" for name in sorted(strange)]
    if not result["complete"]:
        problems.append("the run is not complete")
    elif result["failures"]:
        problems.append("a complete run has no failures")
    if (claimed := result["transcripts"]["episodes"]) != len(episodes):
        problems.append(f"the transcripts have {len(episodes)} episodes, not {claimed}")
    return problems + _problems(result, suite, episodes, sample, seed)


def _problems(
    result: Result, suite: Suite, episodes: Sequence[Record], sample: int, seed: int
) -> list[str]:
    """Return the problems of every entry and of the overall figures."""
    planned = {entry.name: entry for entry in suite.entries}
    problems: list[str] = []
    figures = []
    for entry in result["entries"]:
        ours = planned[entry["name"]]
        mine = [episode for episode in episodes if entry_of(episode) == entry["name"]]
        figures.append(figures_of(mine))
        found = [
            *_figure_problems({k: v for k, v in entry.items() if k not in PLANNED}, figures[-1]),
            *_episode_problems(list(map(decode_episode, mine)), ours, result["actor"]["way"]),
            *_here(entry, ours, mine, suite, result["actor"], sample, seed),
        ]
        problems += [f"{entry['name']}: {problem}" for problem in found]
    expected = overall_of(figures, common_scale=has_common_scale(result["suite"]))
    overall = _figure_problems(result["overall"], expected)
    return problems + [f"overall: {problem}" for problem in overall]


def _suite_problems(claimed: Result) -> Iterator[str]:
    suite = suite_of({k: v for k, v in claimed.items() if k != "hash"}, "its suite")
    if suite.hash != claimed["hash"]:
        yield f"the suite's hash is {suite.hash}, not {claimed['hash']}"
    if suite.name not in suite_files():
        yield f"{suite.name} is none of our suites: {', '.join(suite_files())}"
        return
    ours = load_suite(suite.name)
    if ours.common_scale != suite.common_scale:
        yield f"common_scale is {ours.common_scale} in our suite, got {suite.common_scale}"
    if (ours.version, ours.seeds) != (suite.version, suite.seeds):
        yield (
            f"{suite.name} is v{ours.version} with seeds {list(ours.seeds)} here, "
            f"got v{suite.version} with {list(suite.seeds)}"
        )
    known = {entry.name: entry for entry in ours.entries}
    for entry in suite.entries:
        if known.get(entry.name) != entry:
            yield f"entry {entry.name} is not that of our suite {suite.name} v{ours.version}"


def _figure_problems(claimed: Result, derived: Result) -> Iterator[str]:
    """Name every figure that differs from the one computed from the transcripts."""
    for name in sorted(claimed.keys() | derived.keys()):
        is_there = name in claimed and name in derived
        if not (is_there and _is_close(claimed[name], derived[name])):
            yield f"{name} does not follow from the transcripts"


def _episode_problems(episodes: Sequence[StoredEpisode], planned: Entry, way: str) -> Iterator[str]:
    """Check the returns, turns and tokens of every episode."""
    if any(not _adds_up(episode) for episode in episodes):
        yield "an episode's return does not follow from its rewards"
    longest = max((len(episode.turns) for episode in episodes), default=0)
    if planned.budget.turns is not None and longest > planned.budget.turns:
        yield f"an episode has {longest} turns, the budget is {planned.budget.turns}"
    drafts = math.prod(drafts_of(each) for each in way.split(":") if each in SHAPES)
    most = planned.budget.tokens * drafts
    counts = [n for e in episodes for turn in e.turns for n in turn.tokens.values()]
    if counts and max(counts) > most:
        yield f"an answer has {max(counts)} tokens, the budget is {most}"
    if counts and min(counts) < 0:
        yield f"an answer has {min(counts)} tokens"


def _adds_up(episode: StoredEpisode) -> bool:
    if not episode.returns:
        return False
    returns = {
        agent: sum(turn.rewards.get(agent, math.nan) for turn in episode.turns)
        for agent in episode.returns
    }
    team = mean(list(returns.values()))
    return _is_close(episode.returns, returns) and _is_close(episode.team_return, team)


def _here(
    entry: Result,
    planned: Entry,
    episodes: Sequence[Record],
    suite: Suite,
    actor: Result,
    sample: int,
    seed: int,
) -> list[str]:
    """Compare an entry with the environment of the local suite, and rescore a sample."""
    env = planned.make_env()
    try:
        problems = list(_entry_problems(entry, planned, env, episodes, suite, actor))
        problems += _measure_problems(entry, env, episodes)
        is_ours = entry["scorers"] == [mlrl_envs.fingerprint(env).get("scorer", "")]
    finally:
        env.close()
    size = sample if is_ours or not sample else len(episodes)
    return problems + _score_problems(planned, _sample(episodes, size, f"{seed} {planned.name}"))


def _entry_problems(
    entry: Result,
    planned: Entry,
    env: Any,  # noqa: ANN401 - a PettingZoo environment
    episodes: Sequence[Record],
    suite: Suite,
    actor: Result,
) -> Iterator[str]:
    asked = _asked(env, planned, suite)
    without = _without_reference(env) if actor["base"] == "reference" else set()
    ours = {
        "env": planned.env,
        "split": planned.split,
        "options": dict(planned.options),
        "budget": dataclasses.asdict(planned.budget),
        "agents": list(env.possible_agents),
        "data": mlrl_envs.fingerprint(env).get("data", ""),
        "planned": asked.total(),
        "left_out": sum(n for key, n in asked.items() if key[0] in without),
        "missing": 0,
    }
    for name, value in ours.items():
        if entry[name] != value:
            yield f"{name} is {entry[name]!r}, it must be {value!r}"
    asked = Counter({key: n for key, n in asked.items() if key[0] not in without})
    found = map(decode_episode, episodes)
    there = Counter((e.task_id, e.suite_seed, e.seed) for e in found)
    if absent := (asked - there).total():
        yield f"{absent} episodes that the suite asks for are missing"
    if more := (there - asked).total():
        yield f"{more} episodes are doubled, or none that the suite asks for"


def _measure_problems(entry: Result, env: Any, episodes: Sequence[Record]) -> Iterator[str]:  # noqa: ANN401
    """Name the measures of a game that do not follow from transcripts and counts of moves.

    Values of play against a script cannot be checked: its episodes are not published.
    """
    measures = entry.get("measures")
    if measures is None:
        return
    if not is_game(env):
        yield "measures of an environment that is no game"
        return
    try:
        figures = episode_measures(env, episodes)
        if "moves" in measures:
            figures |= policy_measures(env, measures["moves"], measures.get("samples", 1))
    except (MlrlError, ValueError) as error:
        yield f"its measures cannot be computed: {error}"
        return
    claimed = measures["figures"]
    played = {f"vs_{name}" for name in env.scripts} - figures.keys()
    for name in sorted((claimed.keys() - played) | figures.keys()):
        if not _is_close(claimed.get(name), figures.get(name)):
            yield f"measure {name} does not follow from the transcripts"


def _asked(env: Any, planned: Entry, suite: Suite) -> Counter[tuple[str, int | None, int]]:  # noqa: ANN401
    """Count the episodes of an entry by task, seed of the suite and seed of the episode."""
    tasks = env.family.tasks
    return Counter(
        (tasks[job.options["task_index"]].task_id, seed, job.seed)
        for seed in suite.seeds
        for job in plan_jobs(
            len(tasks), planned.tasks, samples=planned.budget.samples, seed=seed, batch_size=1
        )
    )


def _without_reference(env: Any) -> set[str]:  # noqa: ANN401 - a PettingZoo environment
    return {task.task_id for task in env.family.tasks if not env.family.reference(task)}


def _score_problems(entry: Entry, episodes: Sequence[Record]) -> list[str]:
    if not episodes:
        return []
    try:
        _, changes = rescore(entry.env, entry.env_options, [dict(e) for e in episodes])
    except ConfigError as error:
        return [str(error)]
    except MlrlError as error:
        raise ConfigError(f"{entry.name} cannot be scored here: {error}") from error
    return [
        f"{c.task_id}: return {c.old_return:.4f}, scored here {c.new_return:.4f}"
        + (f" ({c.note})" if c.note else "")
        for c in changes
    ]


def _sample(episodes: Sequence[Record], size: int, seed: str) -> list[Record]:
    if size >= len(episodes):
        return list(episodes)
    return random.Random(seed).sample(list(episodes), size)  # noqa: S311 - reproducible


def _is_close(claimed: Any, derived: Any) -> bool:  # noqa: ANN401 - JSON values
    if isinstance(derived, Mapping) and isinstance(claimed, Mapping):
        return claimed.keys() == derived.keys() and all(
            _is_close(claimed[key], value) for key, value in derived.items()
        )
    if isinstance(derived, list | tuple) and isinstance(claimed, list):
        return len(claimed) == len(derived) and all(map(_is_close, claimed, derived))
    if isinstance(derived, float) and isinstance(claimed, int | float):
        return abs(claimed - derived) <= ROUNDING
    return bool(claimed == derived)
