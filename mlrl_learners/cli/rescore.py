"""`mlrl rescore`: score stored episodes again and print the differences."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_learners.bench.rescore import ScoreChange, rescore
from mlrl_learners.bench.results import (
    figures_of,
    overall_of,
    read_result,
    read_transcripts,
    save_result,
    write_file,
)
from mlrl_learners.bench.suite import env_options, has_common_scale
from mlrl_learners.bench.transcripts import read_episodes
from mlrl_learners.cli.parser import print_json, print_table
from mlrl_learners.config.run import from_mapping
from mlrl_learners.errors import ConfigError
from mlrl_learners.runs.files import EPISODES_FILE
from mlrl_learners.runs.labels import entry_of, origin_of, with_origin, with_scorer

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ("env",)
SHOWN = 20

Record = dict[str, Any]
Origin = tuple[str, dict[str, Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = "The exit status is 1 if a score has changed. Options: --env.max_turns 2"
    parser.add_argument(
        "path", type=Path, help="a result, a folder of bench run, or a JSONL file of episodes"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="file for the new scores")
    parser.add_argument("--json", action="store_true", help="print every change as JSON")


def run(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    """Score the episodes again and print the differences."""
    path = arguments.path / EPISODES_FILE if arguments.path.is_dir() else arguments.path
    result = read_result(path) if path.suffix == ".json" else None
    if result is not None:
        _check_words(arguments.write, overrides)
    if result is None:
        episodes = read_episodes(path)
        origins = [_origin(episode, overrides) for episode in episodes]
    else:
        episodes = read_transcripts(path, result)
        entries = {entry["name"]: entry for entry in result["entries"]}
        for name in map(entry_of, episodes):
            if name not in entries:
                raise ConfigError(f"{str(path)!r} has no entry {name!r}, but an episode of it")
        origins = [_entry_origin(entries[entry_of(episode)]) for episode in episodes]
    if not episodes:
        raise ConfigError(f"{str(path)!r} has no episodes")
    scored, changes = _rescore_all(episodes, origins)
    if arguments.write is not None:
        _keep(arguments.write, result, scored, origins)
    if arguments.json:
        print_json({"episodes": len(episodes), "changes": [asdict(change) for change in changes]})
    else:
        _print(len(episodes), changes)
    return 1 if changes else 0


def _check_words(target: Path | None, overrides: Sequence[str]) -> None:
    """Check the arguments for a result file, whose suite defines the environment options."""
    if overrides:
        raise ConfigError(
            f"a result has its own options: {overrides[0]} is for folders and JSONL files"
        )
    if target is not None and target.suffix != ".json":
        raise ConfigError(f"--write NAME.json for a result, got {str(target)!r}")


def _origin(episode: Record, overrides: Sequence[str]) -> Origin:
    """Return the environment of an episode of `bench run`, `collect` or `evaluate --episodes`."""
    origin = origin_of(episode)
    if origin is None:
        raise ConfigError("an episode does not name its environment: it has no env_id")
    env_id, options = origin
    given = from_mapping({"env": {"id": env_id}}, overrides).env.options
    return env_id, {**options, **given}


def _entry_origin(entry: Mapping[str, Any]) -> Origin:
    turns = entry["budget"]["turns"]
    return entry["env"], env_options(entry["env"], entry["options"], entry["split"], turns)


def _rescore_all(
    episodes: Sequence[Record], origins: Sequence[Origin]
) -> tuple[list[Record], list[ScoreChange]]:
    """Score the episodes in one batch per environment, and return them in their order."""
    places: dict[str, list[int]] = {}
    for place, origin in enumerate(origins):
        places.setdefault(json.dumps(origin, sort_keys=True), []).append(place)
    scored: dict[int, Record] = {}
    changes = []
    for group in places.values():
        env_id, options = origins[group[0]]
        records, found = rescore(env_id, options, [episodes[i] for i in group], progress=True)
        scored |= dict(zip(group, records, strict=True))
        changes += found
    return [scored[place] for place in range(len(episodes))], changes


def _keep(
    path: Path, result: Record | None, episodes: Sequence[Record], origins: Sequence[Origin]
) -> None:
    if result is None:
        write_file(path, _lines(episodes, origins).encode("ascii"))
        return
    entries = []
    for entry in result["entries"]:
        mine = [episode for episode in episodes if entry_of(episode) == entry["name"]]
        scorers = [_scorer_of(*_entry_origin(entry))]
        entries.append({**entry, **figures_of(mine), "scorers": scorers})
    overall = overall_of(entries, common_scale=has_common_scale(result["suite"]))
    save_result(path, {**result, "entries": entries, "overall": overall}, episodes)


def _lines(episodes: Sequence[Record], origins: Sequence[Origin]) -> str:
    """Return the lines of a file of episodes that name the environment and scorer of each."""
    names = [json.dumps(origin, sort_keys=True) for origin in origins]
    distinct = dict(zip(names, origins, strict=True))
    scorers = {name: _scorer_of(*origin) for name, origin in distinct.items()}
    records = (
        with_scorer(with_origin(episode, *origin), scorers[name])
        for episode, origin, name in zip(episodes, origins, names, strict=True)
    )
    return "".join(f"{json.dumps(record)}\n" for record in records)


def _scorer_of(env_id: str, options: Mapping[str, Any]) -> str:
    env = mlrl_envs.make(env_id, **options)
    try:
        return mlrl_envs.fingerprint(env).get("scorer", "")
    finally:
        env.close()


def _print(total: int, changes: Sequence[ScoreChange]) -> None:
    if not changes:
        print(f"{total} episodes, every score as it was")
        return
    rows = [
        (
            change.env_id,
            change.task_id,
            f"{change.old_return:.4f} → {change.new_return:.4f}",
            "" if change.old_solved == change.new_solved else f"now {change.new_solved}",
            ", ".join([*_parts(change), *filter(None, [change.note])]),
        )
        for change in changes[:SHOWN]
    ]
    print_table(("environment", "task", "return", "solved", "parts"), rows)
    if len(changes) > SHOWN:
        print(f"… and {len(changes) - SHOWN} more; --json prints all")
    gain = sum(change.new_return - change.old_return for change in changes) / total
    print(f"{len(changes)} of {total} episodes changed; mean return {gain:+.4f}")


def _parts(change: ScoreChange) -> list[str]:
    return [f"{name} {old:.3f} → {new:.3f}" for name, (old, new) in change.components.items()]
