"""Configurations of published experiments, and how a stored run differs from its plan.

Settings that change no result are not compared: loggers and checkpoints.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.published.plans import SMOKE, Experiment
from mlrl_envs.errors import MlrlError
from mlrl_learners.config.run import RunConfig, load_config, to_mapping
from mlrl_learners.config.stored import load_stored_config, with_absolute_paths
from mlrl_learners.runs.files import CONFIG_FILE

__all__ = ["difference", "overrides", "planned_config", "settings"]

NOT_COMPARED = ("logging", "train.checkpoint_every", "train.keep_checkpoints")


def settings(experiment: Experiment, *, smoke: bool) -> dict[str, Any]:
    """Return preset, model and options of an experiment as JSON values."""
    options = {"learner.model": experiment.model, **experiment.options}
    if smoke:
        options |= {**SMOKE, **experiment.smoke}
    model = options.pop("learner.model")
    found = {"preset": experiment.preset, "model": model, "options": options}
    return dict(json.loads(json.dumps(found)))


def overrides(experiment: Experiment, seed: int, *, smoke: bool) -> list[str]:
    """Return the words that follow the preset on the command line of `mlrl train`."""
    chosen = settings(experiment, smoke=smoke)
    options = {"learner.model": chosen["model"], **chosen["options"], "train.seed": seed}
    return [word for key, value in options.items() for word in (f"--{key}", _text(value))]


def planned_config(experiment: Experiment, seed: int, *, smoke: bool) -> RunConfig:
    """Return the configuration of a run, as its folder stores it."""
    words = overrides(experiment, seed, smoke=smoke)
    return with_absolute_paths(load_config(experiment.preset, words))


def difference(planned: RunConfig, run_dir: Path) -> str | None:
    """Return how the configuration of the run in a folder differs from the planned one.

    Args:
        planned: From `planned_config`.
        run_dir: Folder of a run; one without a configuration does not differ.
    """
    file = run_dir / CONFIG_FILE
    if not file.exists():
        return None
    try:
        stored = load_stored_config(file)
    except MlrlError as error:
        return f"{CONFIG_FILE} cannot be read: {error}"
    before, now = (json.loads(json.dumps(to_mapping(each))) for each in (stored, planned))
    return next(_changes(before, now), None)


def _changes(before: object, now: object, name: str = "") -> Iterator[str]:
    if name in NOT_COMPARED or before == now:
        return
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        yield f"{name} is {before!r}, planned is {now!r}"
        return
    for key in sorted(before.keys() | now.keys()):
        yield from _changes(before.get(key), now.get(key), f"{name}.{key}" if name else str(key))


def _text(value: object) -> str:
    """Return a value as the command line reads it: text as it is, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
