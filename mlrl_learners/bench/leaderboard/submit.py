"""Checking somebody else's result: its form, its arithmetic, and a sample of its scores."""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_envs.errors import MlrlError
from mlrl_learners.bench.plan import content_hash
from mlrl_learners.bench.rescore import rescore
from mlrl_learners.bench.results import figures_of, read_result, read_transcripts
from mlrl_learners.bench.suite import Entry, Suite, load_suite, suite_files, suite_of
from mlrl_learners.errors import ConfigError

__all__ = ["check_submission"]

ROUNDING = 1e-6
CHECKED = ("mean", "iqm", "solved_rate", "episodes", "tokens", "prompt_tokens", "returns", "solved")
Record = Mapping[str, Any]


def check_submission(path: Path, *, sample: int = 20) -> list[str]:
    """Return what is wrong with a result, in words; nothing where it can be accepted.

    Its suite must be ours under our name, each figure must follow from the transcripts, and
    `sample` episodes of each environment, which its own hash chooses, must score the same here.

    Args:
        path: The result; its transcripts lie beside it.
        sample: Episodes of each entry that are scored anew; 0 for none.

    Raises:
        ConfigError: If it is no result, or its transcripts are missing or others.
        InfraError: If the machinery fails.
    """
    result = read_result(path)
    episodes = read_transcripts(path, result)
    problems = list(_suite_problems(result["suite"]))
    if not result["complete"]:
        problems.append("the run is not complete")
    keys = [episode.get("key") for episode in episodes]
    if len(set(keys)) != len(keys):
        problems.append("an episode appears twice")
    names = {entry["name"] for entry in result["entries"]}
    problems += sorted({f"unknown entry {e['entry']}" for e in episodes if e["entry"] not in names})
    if names != {entry["name"] for entry in result["suite"]["entries"]}:
        problems.append("the entries are not those of its suite")
        return problems
    planned = {entry.name: entry for entry in _suite(result["suite"]).entries}
    for entry in result["entries"]:
        mine = [episode for episode in episodes if episode["entry"] == entry["name"]]
        found = _entry_problems(entry, planned[entry["name"]], mine, result["suite"]["seeds"])
        problems += [f"{entry['name']}: {problem}" for problem in found]
        chosen = _sample(mine, sample, result["transcripts"]["sha256"])
        problems += [
            f"{entry['name']}: {p}" for p in _score_problems(planned[entry["name"]], chosen)
        ]
    return problems


def _suite_problems(claimed: Record) -> Iterator[str]:
    suite = _suite(claimed)
    if suite.hash != claimed["hash"]:
        yield f"the suite's hash is {suite.hash}, not {claimed['hash']}"
    if suite.name not in suite_files():
        yield f"{suite.name} is none of our suites: {', '.join(suite_files())}"
        return
    ours = load_suite(suite.name)
    if (ours.version, ours.seeds) != (suite.version, suite.seeds):
        yield (
            f"{suite.name} is v{ours.version} with seeds {list(ours.seeds)} here, "
            f"got v{suite.version} with {list(suite.seeds)}"
        )
    known = {entry.name: entry for entry in ours.entries}
    for entry in suite.entries:
        if known.get(entry.name) != entry:
            yield f"entry {entry.name} is not that of our suite {suite.name} v{ours.version}"


def _suite(claimed: Record) -> Suite:
    return suite_of({k: v for k, v in claimed.items() if k != "hash"}, "its suite")


def _entry_problems(
    entry: Record, planned: Entry, episodes: Sequence[Record], seeds: Sequence[int]
) -> Iterator[str]:
    for name in ("env", "split", "options"):
        if entry[name] != getattr(planned, name):
            yield f"{name} is {entry[name]!r}, its suite says {getattr(planned, name)!r}"
    derived = figures_of(episodes)
    for name in CHECKED:
        if not _is_close(entry.get(name), derived.get(name)):
            yield f"{name} does not follow from the transcripts"
    if entry["missing"] or entry["episodes"] + entry["left_out"] != entry["planned"]:
        yield (
            f"{entry['episodes']} episodes and {entry['left_out']} left out are not the "
            f"{entry['planned']} that were planned"
        )
    longest = max((len(episode["turns"]) for episode in episodes), default=0)
    if planned.budget.turns is not None and longest > planned.budget.turns:
        yield f"an episode has {longest} turns, the budget is {planned.budget.turns}"
    if strange := {e["suite_seed"] for e in episodes} - set(seeds):
        yield f"seeds {sorted(strange)} are none of the suite's"
    env = planned.make_env()
    try:
        tasks = min(planned.tasks or env.num_tasks, env.num_tasks)
    finally:
        env.close()
    asked = tasks * len(seeds) * planned.budget.samples
    if entry["planned"] != asked:
        yield f"{entry['planned']} episodes were planned, the suite asks for {asked}"


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
    """Choose episodes that whoever wrote the file could not choose."""
    if size >= len(episodes):
        return list(episodes)
    draw = random.Random(content_hash([seed, len(episodes)]))  # noqa: S311 - reproducible
    return draw.sample(list(episodes), size)


def _is_close(claimed: Any, derived: Any) -> bool:  # noqa: ANN401 - JSON values
    if isinstance(derived, Mapping) and isinstance(claimed, Mapping):
        return claimed.keys() == derived.keys() and all(
            _is_close(claimed[key], value) for key, value in derived.items()
        )
    if isinstance(derived, list) and isinstance(claimed, list):
        return len(claimed) == len(derived) and all(map(_is_close, claimed, derived))
    if isinstance(derived, float) and isinstance(claimed, int | float):
        return abs(claimed - derived) <= ROUNDING
    return bool(claimed == derived)
