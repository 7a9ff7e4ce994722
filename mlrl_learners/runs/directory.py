"""The run directory of a training run: creation, resumption, appended lines.

`config.yaml` holds the resolved configuration, `environment.json` versions and hardware. Lines of
the `*.jsonl` files are only appended. When a run is resumed, lines written after its last
checkpoint move to `*.abandoned.jsonl`, because those iterations are repeated. With several
processes only the main process writes. A lock keeps a second run out until the first has ended.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from mlrl_learners.config.opponents import OpponentsConfig
from mlrl_learners.config.stored import with_absolute_values
from mlrl_learners.config.yaml import dump_yaml, parse_yaml
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.loggers import JsonlFile
from mlrl_learners.processes.work_sharing import exchange, is_main
from mlrl_learners.runs.files import (
    CONFIG_FILE,
    ENVIRONMENT_FILE,
    EPISODES_FILE,
    EVALUATIONS_FILE,
    FAILURES_FILE,
    METRICS_FILE,
)
from mlrl_learners.runs.lock import hold_folder
from mlrl_learners.runs.provenance import computing_versions
from mlrl_learners.runs.records import failure_record, rollout_record
from mlrl_learners.types import FailedEpisode, Rollout, RolloutConfig

__all__ = ["RunDir", "changed_setting", "check_kind", "check_same_everywhere", "check_unchanged"]

APPENDED_FILES = (METRICS_FILE, EPISODES_FILE, EVALUATIONS_FILE, FAILURES_FILE)
MAY_CHANGE = (
    *(
        "train.iterations",
        "train.epochs",
        "train.checkpoint_every",
        "train.keep_checkpoints",
        "logging",
    ),
    *("env.server", "ray"),
)
"""Configuration keys that a resumed run may change; `env.server` if fingerprints are equal,
and `ray` apart from `ray.lag`."""


class RunDir:
    """Opens the directory of a new or resumed run, and locks it; a context manager.

    Every process of a run must open it.

    Args:
        path: The folder.
        config: Resolved configuration, JSON values.
        environment: Versions and hardware, JSON values.
        resume: Continue the run in the folder; start a new one if there is none.
        token_ids: Store token ids and log-probabilities in `episodes.jsonl`.

    Raises:
        ConfigError: If processes of the run differ, see `check_same_everywhere`.
        RunDirError: If the folder cannot be written, holds a run and `resume` is false, holds a run
            of another configuration or of another kind, or is locked by another run.
    """

    def __init__(
        self,
        path: Path,
        *,
        config: Mapping[str, Any],
        environment: Mapping[str, Any],
        resume: bool,
        token_ids: bool = False,
    ) -> None:
        self.path = path
        self._token_ids = token_ids
        self._files: dict[str, JsonlFile] = {}
        self._lock: IO[str] | None = None
        check_same_everywhere(config, environment.get("env"))
        if not is_main():
            return
        self._check(config, environment, resume)
        self._lock = hold_folder(path)
        self._write(CONFIG_FILE, dump_yaml(json.loads(json.dumps(config))))
        if not (path / ENVIRONMENT_FILE).exists():
            self._write(ENVIRONMENT_FILE, json.dumps(environment, indent=2) + "\n")
        self._files = {name: JsonlFile(path / name) for name in APPENDED_FILES}

    def __enter__(self) -> "RunDir":
        """Return the directory."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let other runs in."""
        if self._lock is not None:
            self._lock.close()

    def rewind(self, iteration: int) -> None:
        """Move every line of a later iteration to `*.abandoned.jsonl`.

        Raises:
            RunDirError: If a line has no iteration, or a file cannot be written.
        """
        for file in self._files.values():
            try:
                file.keep(lambda record: int(str(record["iteration"])) <= iteration)
            except (KeyError, ValueError) as error:
                raise RunDirError(
                    f"{str(file.path)!r} has a line that is not of a training run: {error!r}; "
                    "remove it to resume"
                ) from error

    def add_metrics(self, iteration: int, metrics: Mapping[str, object]) -> None:
        """Append the metrics of an iteration."""
        self._append(METRICS_FILE, {"iteration": iteration, **metrics})

    def add_evaluation(self, iteration: int, found: Mapping[str, object]) -> None:
        """Append an evaluation."""
        self._append(EVALUATIONS_FILE, {"iteration": iteration, **found})

    def add_rollouts(self, iteration: int, rollouts: Sequence[Rollout]) -> None:
        """Append one line per rollout."""
        records = (
            rollout_record(rollout, token_ids=self._token_ids, iteration=iteration, rollout=number)
            for number, rollout in enumerate(rollouts)
        )
        self._append(EPISODES_FILE, *records)

    def add_failures(self, iteration: int, failures: Sequence[FailedEpisode]) -> None:
        """Append one line per episode that infrastructure broke."""
        records = (failure_record(failure, iteration=iteration) for failure in failures)
        self._append(FAILURES_FILE, *records)

    def keep_rollouts(self, iteration: int, rollouts: Sequence[Rollout]) -> Path:
        """Write rollouts with tokens, log-probabilities and nuclei, to debug a failed update."""
        name = f"rollouts_{iteration}.json"
        if is_main():
            records = [dataclasses.asdict(rollout) for rollout in rollouts]
            self._write(name, json.dumps(records, default=lambda array: array.tolist()))
        return self.path / name

    def _append(self, name: str, *records: Mapping[str, object]) -> None:
        if name in self._files:
            self._files[name].extend(records)

    def _check(
        self, config: Mapping[str, Any], environment: Mapping[str, Any], resume: bool
    ) -> None:
        check_kind(self.path)
        if not (self.path / CONFIG_FILE).exists():
            return
        if not resume:
            raise RunDirError(
                f"{str(self.path)!r} holds a run already; resume it or choose another folder"
            )
        check_unchanged(self.path, config, lambda: environment.get("env"))

    def _write(self, name: str, text: str) -> None:
        partial = self.path / f".{name}.partial"
        try:
            partial.write_text(text)
            partial.replace(self.path / name)
        except OSError as error:
            raise RunDirError(f"cannot write {str(self.path / name)!r}: {error}") from error


def check_kind(path: Path) -> None:
    """Check that a folder does not hold episodes of another command, such as `mlrl bench run`.

    Raises:
        RunDirError: If it has episodes and no configuration of a training run.
    """
    if (path / EPISODES_FILE).exists() and not (path / CONFIG_FILE).exists():
        raise RunDirError(
            f"{str(path)!r} holds episodes that are not of a training run: it has {EPISODES_FILE} "
            f"and no {CONFIG_FILE}; choose another folder"
        )


def check_unchanged(
    path: Path, config: Mapping[str, Any], fingerprint: Callable[[], object]
) -> None:
    """Check that a run can go on with a configuration.

    Args:
        path: Folder of the run.
        config: Resolved configuration, JSON values.
        fingerprint: Returns the fingerprint of the environment; called if its server has changed.

    Raises:
        RunDirError: If the run was started with another configuration, or its environment differs.
    """
    stored = path / CONFIG_FILE
    before = parse_yaml(stored.read_text(), str(stored))
    changed = changed_setting(before, config)
    if changed:
        raise RunDirError(f"{str(path)!r} was started with another configuration: {changed}")
    if _lag(before) != _lag(config):
        raise RunDirError(
            f"{str(path)!r} was started with ray.lag {_lag(before)}, now {_lag(config)}"
        )
    if _server(before) != _server(config):
        _check_fingerprint(path, fingerprint())


def check_same_everywhere(config: Mapping[str, Any], fingerprint: object) -> None:
    """Check that all processes of a run have the same settings, packages, tasks and scorer.

    Args:
        config: Resolved configuration of this process, JSON values.
        fingerprint: Fingerprint of its environment.

    Raises:
        ConfigError: If a process differs from the first one.
    """
    first, *others = exchange((config, computing_versions(), fingerprint))
    for rank, (settings, found, env) in enumerate(others, start=1):
        if changed := changed_setting(first[0], settings):
            reason = f"{changed}; start all with the same command"
        elif found != first[1]:
            reason = f"it has {found}, the first {first[1]}; install the same versions"
        elif env != first[2]:
            reason = "it has other tasks or another scorer; give all the same code and data"
        else:
            continue
        raise ConfigError(f"process {rank} of this run differs from process 0: {reason}")


def changed_setting(stored: Any, config: Mapping[str, Any]) -> str | None:  # noqa: ANN401 - JSON
    """Describe the first setting in which a stored configuration differs and may not.

    Args:
        stored: The values of `config.yaml` of a run.
        config: A configuration, as `to_mapping` returns it.

    Returns:
        Name and both values; None if the results of both are the same.
    """
    before = _comparable(stored) if isinstance(stored, dict) else stored
    if isinstance(before, dict) and "opponents" in config:  # earlier versions had none
        before.setdefault("opponents", dataclasses.asdict(OpponentsConfig()))
    _add_new_settings(before, config)
    changed = _changed_keys(before, _comparable(config))
    return changed[0] if changed else None


def _comparable(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON values of a configuration with absolute paths; earlier versions had none."""
    found: dict[str, Any] = json.loads(json.dumps(with_absolute_values(config)))
    return found


def _add_new_settings(before: Any, config: Mapping[str, Any]) -> None:  # noqa: ANN401 - JSON values
    """Add the rollout settings that a stored configuration is too old to have."""
    stored = before.get("rollout") if isinstance(before, dict) else None
    given = config.get("rollout") or {}
    if isinstance(stored, dict):
        for name, default in dataclasses.asdict(RolloutConfig()).items():
            if given.get(name) is not None:
                stored.setdefault(name, default)


def _check_fingerprint(path: Path, fingerprint: object) -> None:
    """Refuse to go on where tasks or scorer differ from those of the run's start."""
    stored = path / ENVIRONMENT_FILE
    before = json.loads(stored.read_text()).get("env") if stored.exists() else None
    if not before or before != fingerprint:
        raise RunDirError(
            f"{str(path)!r} cannot go on with another env.server: its data or scorer are "
            "not those that the run was started with; install the same version there"
        )


def _server(config: Any) -> object:  # noqa: ANN401 - JSON values
    return (config.get("env") or {}).get("server") if isinstance(config, Mapping) else None


def _lag(config: Any) -> object:  # noqa: ANN401 - JSON values
    section = config.get("ray") if isinstance(config, Mapping) else None
    return (section or {}).get("lag", 0)


def _changed_keys(old: Any, new: Any, name: str = "") -> list[str]:  # noqa: ANN401 - JSON values
    """Describe where two configurations differ in a key that decides the results of a run."""
    if name in MAY_CHANGE or old == new:
        return []
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [f"{name} was {old!r}, now {new!r}"]
    prefix = f"{name}." if name else ""
    return [
        change
        for key in sorted(old.keys() | new.keys())
        for change in _changed_keys(old.get(key), new.get(key), f"{prefix}{key}")
    ]
