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
from mlrl_learners.bench.rescore import rescore, with_same_observations
from mlrl_learners.bench.results import read_result, read_transcripts
from mlrl_learners.bench.suite import Entry, Suite
from mlrl_learners.bench.suite_folder import SuiteFolder
from mlrl_learners.bench.suite_run import RunSettings
from mlrl_learners.errors import ConfigError
from mlrl_learners.runs.labels import entry_of, place_of
from mlrl_learners.runs.stored import Record

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
        InfraError: If infrastructure fails.
    """
    result = read_result(path)
    _check_same_actor(path, result, actor, settings)
    stored = read_transcripts(path, result)
    usable = [(each, _usable(each, result, stored)) for each in suite.entries]
    planned = [
        (each, found, _units(suite, each, source, settings)) for each, found in usable if found
    ]
    folder.open()
    return sum(_add(each, units, found, folder) for each, found, units in planned)


def _check_same_actor(
    path: Path, result: Mapping[str, Any], actor: Mapping[str, Any], settings: RunSettings
) -> None:
    """Raise `ConfigError` if a result is of another actor or decoding."""
    for name in ACTOR:
        theirs, ours = (_compared(each.get(name)) for each in (result["actor"], actor))
        if theirs != ours:
            raise ConfigError(
                f"{str(path)!r} is of another actor: its {name} is {theirs!r}, not {ours!r}"
            )
    if result["settings"]["explore"] != settings.explore:
        decoding = "greedy decoding" if settings.explore else "sampling"
        raise ConfigError(f"{str(path)!r} was decoded by {decoding}, this run is not")


def _compared(value: Any) -> Any:  # noqa: ANN401 - a JSON value of an actor's description
    """Return a value without options of `COMPUTE`."""
    if isinstance(value, Mapping):
        return {name: each for name, each in value.items() if name != COMPUTE}
    return value


def _units(suite: Suite, entry: Entry, source: ActorSource, settings: RunSettings) -> list[Unit]:
    """Return the episodes of an entry."""
    env = entry.make_env()
    try:
        size, explore = settings.batch_size, settings.explore
        plan = plan_entry(suite, entry, env, source, explore=explore, batch_size=size)
        return [unit for batch in plan for unit in batch.units]
    finally:
        env.close()


def _usable(entry: Entry, result: Mapping[str, Any], stored: Sequence[Record]) -> list[Record]:
    """Return the episodes of an entry that agents would play in the same way now."""
    ours = asdict(entry)
    theirs = next((each for each in result["entries"] if each["name"] == entry.name), None)
    if theirs is None or any(theirs[name] != ours[name] for name in ENTRY):
        return []
    env = entry.make_env()
    try:
        data = mlrl_envs.fingerprint(env).get("data", "")
    finally:
        env.close()
    if theirs["data"] != data:
        return []
    episodes = [each for each in stored if entry_of(each) == entry.name]
    if theirs["options"] == ours["options"]:
        return episodes
    return with_same_observations(entry.env, entry.env_options, episodes)


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
