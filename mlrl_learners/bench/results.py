"""Result files of benchmarks: one JSON file per run, with its transcripts in a second file.

Every figure is computed from the transcripts by `figures_of`, so that anyone who has both files can
check it. This module owns the format of result files; episodes are those of `mlrl_learners.runs`.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_learners.bench.measures import SuiteMeasures
from mlrl_learners.bench.schemas import check_result
from mlrl_learners.bench.suite import Suite
from mlrl_learners.bench.suite_run import PlayedEntry, RunSettings
from mlrl_learners.bench.transcripts import pack, published, read_episodes, sha256_of
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.figures.comparisons import interquartile_mean, iqm_interval, mean_interval
from mlrl_learners.figures.means import agent_means, component_means, mean, pass_at_k
from mlrl_learners.runs.labels import missing_labels
from mlrl_learners.runs.provenance import result_provenance
from mlrl_learners.runs.stored import Record, StoredEpisode, decode_episode

__all__ = [
    "FORMAT",
    "TRANSCRIPTS",
    "figures_of",
    "overall_of",
    "read_result",
    "read_transcripts",
    "save_result",
    "write_file",
    "write_json",
    "write_result",
]

FORMAT = "mlrl-bench/1"
TRANSCRIPTS = ".episodes.jsonl.gz"
"""Ending of the file of transcripts; the rest of its name is that of the result."""

Result = Mapping[str, Any]


def write_result(
    path: Path,
    suite: Suite,
    actor: Mapping[str, Any],
    played: Sequence[PlayedEntry],
    settings: RunSettings,
    *,
    measures: SuiteMeasures | None = None,
) -> dict[str, Any]:
    """Write a result and its transcripts, and return the result.

    Args:
        path: `NAME.json`; the transcripts become `NAME.episodes.jsonl.gz` in the same folder.
        suite: The suite that was played.
        actor: Description of the actor, JSON values with at least a `name`.
        played: Its episodes, entry by entry.
        settings: Settings of the run.
        measures: Measures of its games; a result without all that was asked for is not complete.

    Raises:
        RunDirError: If a file cannot be written.
    """
    measures = measures or SuiteMeasures({}, {})
    entries = [_entry_result(each, measures.of_entry.get(each.entry.name)) for each in played]
    figures = [figures_of(each.episodes) for each in played]
    result = {
        "format": FORMAT,
        "suite": {**suite.as_dict(), "hash": suite.hash},
        "actor": dict(actor),
        "complete": all(each.missing == 0 for each in played) and not measures.failures,
        "overall": overall_of(figures, common_scale=suite.common_scale),
        "entries": [{**e, **f} for e, f in zip(entries, figures, strict=True)],
        "failures": _failures(played, measures),
        "settings": {"explore": settings.explore, "batch_size": settings.batch_size},
        "provenance": result_provenance(),
    }
    return save_result(path, result, published(played))


def save_result(path: Path, result: Result, episodes: Sequence[Record]) -> dict[str, Any]:
    """Write a result and its transcripts, and return the result with the hash of the transcripts.

    Raises:
        RunDirError: If a file cannot be written.
    """
    transcripts = path.with_name(f"{path.stem}{TRANSCRIPTS}")
    data = pack(episodes)
    named = {
        "file": transcripts.name,
        "sha256": sha256_of(data),
        "episodes": len(episodes),
    }
    whole = {**result, "transcripts": named}
    write_file(transcripts, data)
    write_json(path, whole)
    return whole


def write_json(path: Path, value: Result) -> None:
    """Write a file of JSON values, completely or not at all.

    Raises:
        RunDirError: If it cannot be written.
    """
    write_file(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())


def write_file(path: Path, data: bytes) -> None:
    """Write a file, completely or not at all; a device or a pipe is written to directly.

    Raises:
        RunDirError: If it cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        raise RunDirError(f"cannot write {str(path)!r}: {error}") from error


def read_transcripts(path: Path, result: Result) -> list[dict[str, Any]]:
    """Read the records of the episodes of the result at `path`.

    Raises:
        ConfigError: If the file is missing, has another SHA-256 than the result says, or holds an
            episode without entry or suite seed.
    """
    beside = path.parent / result["transcripts"]["file"]
    if not beside.is_file():
        raise ConfigError(f"{path.name} lacks its transcripts: {beside.name} is not in its folder")
    if sha256_of(beside.read_bytes()) != result["transcripts"]["sha256"]:
        raise ConfigError(f"{beside.name} does not belong to {path.name}: other SHA-256")
    episodes = read_episodes(beside)
    for number, episode in enumerate(episodes, start=1):
        if absent := missing_labels(episode):
            raise ConfigError(f"{beside.name}:{number} is not of a suite: it has no {absent[0]}")
    return episodes


def read_result(path: Path) -> dict[str, Any]:
    """Read a result file and check it against the schema.

    Raises:
        ConfigError: If it cannot be read, or violates the schema; the message names the place.
    """
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read a result from {str(path)!r}: {error}") from error
    check_result(value, str(path))
    result: dict[str, Any] = value
    return result


def figures_of(records: Sequence[Record]) -> dict[str, Any]:
    """Return every figure of an entry, computed from its episodes.

    Means are over tasks of a task's mean, intervals draw tasks. Means of zero episodes and
    intervals of a single task are None.

    Args:
        records: Episodes of the entry.
    """
    episodes = [decode_episode(record) for record in records]
    returns = _by_task(episodes, lambda episode: episode.team_return)
    solved = _by_task(episodes, lambda episode: episode.solved)
    turns = [turn for episode in episodes for turn in episode.turns]
    counted = {
        "episodes": len(episodes),
        "tokens": sum(sum(turn.tokens.values()) for turn in turns),
        "prompt_tokens": sum(sum(turn.prompt_tokens.values()) for turn in turns),
        "seconds": round(sum(float(e.seconds) for e in episodes), 2),
        "returns": returns,
        "solved": solved,
    }
    if not episodes:
        return {**counted, **dict.fromkeys(("mean", "interval", "iqm", "iqm_interval"))}
    means = [mean(values) for values in _pooled(returns)]
    seeds = [[mean(v) for v in by_seed.values()] for by_seed in returns.values()]
    flags = _pooled(solved)
    return {
        **counted,
        "mean": mean(means),
        "interval": mean_interval([means]),
        "iqm": interquartile_mean(seeds),
        "iqm_interval": iqm_interval(seeds),
        "agent_returns": agent_means(episodes),
        "components": component_means(episodes),
        "solved_rate": mean([mean(each) for each in flags]),
        "pass_at_k": _pass_at_k(flags),
    }


def _pass_at_k(flags: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return pass@k for every k, from the solved flags of each task."""
    counts = [(len(each), int(sum(each))) for each in flags]
    found = pass_at_k(counts, max(n for n, _ in counts))
    return {str(k): value for k, value in found.items()}


def overall_of(entries: Sequence[Result], *, common_scale: bool = True) -> dict[str, Any]:
    """Return the figures of a whole run, in whose mean every environment has the same weight.

    The interquartile mean is over the tasks of all environments together. Entries without an
    episode are left out.

    Args:
        entries: Figures of each entry.
        common_scale: As in `Suite`; if false, the means of several entries are None.
    """
    scored = [entry for entry in entries if entry["episodes"]]
    total = {
        name: sum(entry[name] for entry in scored)
        for name in ("episodes", "tokens", "prompt_tokens")
    }
    seconds = round(sum(entry["seconds"] for entry in scored), 2)
    counted = {**total, "seconds": seconds, "entries": len(scored)}
    no_means = dict.fromkeys(("mean", "interval", "iqm", "iqm_interval"))
    if not scored:
        return {**counted, **no_means}
    solved_rate = mean([entry["solved_rate"] for entry in scored])
    if len(scored) > 1 and not common_scale:
        return {**counted, **no_means, "solved_rate": solved_rate}
    tasks = [
        [mean(v) for v in e["returns"][task].values()] for e in scored for task in e["returns"]
    ]
    return {
        **counted,
        "mean": mean([entry["mean"] for entry in scored]),
        "interval": mean_interval(
            [[mean(values) for values in _pooled(e["returns"])] for e in scored]
        ),
        "iqm": interquartile_mean(tasks),
        "iqm_interval": iqm_interval(tasks),
        "solved_rate": solved_rate,
    }


def _entry_result(played: PlayedEntry, measures: Result | None) -> dict[str, Any]:
    entry = played.entry
    return {
        "name": entry.name,
        "env": entry.env,
        "split": entry.split,
        "agents": list(played.agents),
        "options": dict(entry.options),
        "budget": {
            "turns": entry.budget.turns,
            "tokens": entry.budget.tokens,
            "samples": entry.budget.samples,
        },
        "data": played.hashes.get("data", ""),
        "scorers": sorted({decode_episode(record).scorer for record in played.episodes}),
        "planned": played.planned,
        "left_out": played.left_out,
        "missing": played.missing,
        **({"measures": dict(measures)} if measures else {}),
    }


def _by_task(
    episodes: Sequence[StoredEpisode], value_of: Callable[[StoredEpisode], float]
) -> dict[str, dict[str, list[float]]]:
    """Return task -> seed of the suite -> values."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for episode in episodes:
        task = episode.task_id or f"seed {episode.seed}"
        found[task][str(episode.suite_seed)].append(value_of(episode))
    return {task: dict(by_seed) for task, by_seed in found.items()}


def _pooled(by_task: Mapping[str, Mapping[str, Sequence[float]]]) -> list[list[float]]:
    """Return the values of each task over all seeds."""
    return [[v for values in by_seed.values() for v in values] for by_seed in by_task.values()]


def _failures(played: Sequence[PlayedEntry], measures: SuiteMeasures) -> list[dict[str, Any]]:
    """Return the number of episodes lost to each kind of error, with its last message.

    Episodes of measures count, and so does a batch of questions.
    """
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in played:
        for failure in (*each.failures, *measures.failures.get(each.entry.name, ())):
            found[each.entry.name, failure.error].append(failure.message)
    return [
        {"entry": entry, "error": error, "episodes": len(messages), "message": messages[-1]}
        for (entry, error), messages in sorted(found.items())
    ]
