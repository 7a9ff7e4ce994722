"""Episodes of an earlier result in the folder of a run, so that only the others are played.

A new version of a suite shares most entries with the one before. Episodes are taken over if the
actor, the entry, its data and the way of decoding are the same; they are scored again. How a model
is computed (`compute`: device, precision) is not compared. If the options of an entry have changed,
those episodes are taken over in which agents would read the same, because a changed reward does not
change what they write. The earlier result must have stored their prompts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_learners.bench.plan import ActorSource, Unit, plan_entry
from mlrl_learners.bench.rescore import has_same_observations, rescore
from mlrl_learners.bench.results import read_result, read_transcripts
from mlrl_learners.bench.suite import Entry, Suite
from mlrl_learners.bench.suite_folder import SuiteFolder
from mlrl_learners.bench.suite_run import RunSettings
from mlrl_learners.errors import ConfigError
from mlrl_learners.runs.labels import entry_of, place_of
from mlrl_learners.runs.stored import Record, decode_episode

__all__ = ["reuse_episodes"]

ACTOR = ("way", "base", "options", "weights")
COMPUTE = "compute"  # group of options that a result may differ in
ENTRY = ("env", "split", "budget")


def reuse_episodes(
    path: Path,
    suite: Suite,
    source: ActorSource,
    actor: Mapping[str, Any],
    folder: SuiteFolder,
    settings: RunSettings,
) -> int:
    """Add the episodes of a result that a suite asks for to the folder of a run.

    Args:
        path: The result; its transcripts are in the same folder.
        suite: The suite that is to be played.
        source: Makes the actor.
        actor: Description of the actor, see `results.write_result`.
        folder: Folder of the run, which this function opens.
        settings: Settings of the run.

    Returns:
        Number of episodes that were added.

    Raises:
        ConfigError: If the result is of another actor or decoding, or cannot be read.
        RunDirError: If another run holds the folder, or it cannot be written.
    """
    result = read_result(path)
    for name in ACTOR:
        theirs, ours = (_compared(each.get(name)) for each in (result["actor"], actor))
        if theirs != ours:
            raise ConfigError(
                f"{str(path)!r} is of another actor: its {name} is {theirs!r}, not {ours!r}"
            )
    if result["settings"]["explore"] != settings.explore:
        decoding = "greedy decoding" if settings.explore else "sampling"
        raise ConfigError(f"{str(path)!r} was decoded by {decoding}, this run is not")
    stored = read_transcripts(path, result)
    planned = {each.name: _units(suite, each, result, source, settings) for each in suite.entries}
    usable = {each.name: _usable(each, result, stored) for each in suite.entries}
    folder.open()
    return sum(_add(each, planned[each.name], usable[each.name], folder) for each in suite.entries)


def _compared(value: Any) -> Any:  # noqa: ANN401 - a JSON value of an actor's description
    """Return a value without options of `COMPUTE`."""
    if isinstance(value, Mapping):
        return {name: each for name, each in value.items() if name != COMPUTE}
    return value


def _units(
    suite: Suite,
    entry: Entry,
    result: Mapping[str, Any],
    source: ActorSource,
    settings: RunSettings,
) -> list[Unit]:
    """Return the episodes of an entry; none if the result lacks it."""
    env = entry.make_env()
    try:
        if not _is_same(entry, result, mlrl_envs.fingerprint(env).get("data", "")):
            return []
        size, explore = settings.batch_size, settings.explore
        plan = plan_entry(suite, entry, env, source, explore=explore, batch_size=size)
        return [unit for batch in plan for unit in batch.units]
    finally:
        env.close()


def _is_same(entry: Entry, result: Mapping[str, Any], data: str) -> bool:
    """Return whether a result has this entry, with the same data."""
    ours, theirs = asdict(entry), _stored_entry(entry, result)
    same = all(theirs.get(name) == ours[name] for name in ENTRY)
    return same and bool(theirs["data"] == data)


def _usable(entry: Entry, result: Mapping[str, Any], stored: Sequence[Record]) -> list[Record]:
    """Return the episodes of an entry; with other options, those with the same observations."""
    of_entry = [each for each in stored if entry_of(each) == entry.name]
    if _stored_entry(entry, result).get("options") == asdict(entry)["options"]:
        return of_entry
    env = entry.make_env()
    try:
        return [each for each in of_entry if has_same_observations(env, decode_episode(each))]
    finally:
        env.close()


def _stored_entry(entry: Entry, result: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((each for each in result["entries"] if each["name"] == entry.name), {})


def _add(entry: Entry, units: Sequence[Unit], stored: Sequence[Record], folder: SuiteFolder) -> int:
    """Score the stored episodes of units again, and add them to the folder; return their number."""
    known = {place_of(each): each for each in stored}
    missing = [unit for unit in folder.missing(units) if _place(unit) in known]
    scored, _ = rescore(entry.env, entry.env_options, [known[_place(unit)] for unit in missing])
    origin = {"env_id": entry.env, "env_options": entry.env_options}
    for unit, record in zip(missing, scored, strict=True):
        folder.keep({**record, "key": unit.key, "source": origin, "scorer": unit.scorer})
    return len(missing)


def _place(unit: Unit) -> tuple[object, object, object]:
    return unit.suite_seed, unit.job.options.get("task_index"), unit.job.seed
