"""Models of a policy server: loads runs, models and adapters, and replaces weights in place.

Not thread-safe: the sampling thread also loads the weights.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlrl_envs.errors import MlrlError
from mlrl_learners.algorithms.team_models import load_policy
from mlrl_learners.algorithms.team_options import ComputeOptions
from mlrl_learners.algorithms.team_weights import TEAM_FILE, read_policy_names
from mlrl_learners.errors import CheckpointError, ConfigError
from mlrl_learners.policies import AdapterConfig, Policy
from mlrl_learners.policies.adapters import BASE_FILE, WEIGHTS_FILE
from mlrl_learners.runs.files import CONFIG_FILE
from mlrl_learners.runs.folders import (
    LEARNER_FOLDER,
    STATE_FILE,
    STEP_PREFIX,
    reading,
)
from mlrl_learners.serving.errors import one_line
from mlrl_learners.training.checkpoint import latest_checkpoint

__all__ = ["ServedModels", "is_run", "newest"]

ADAPTER_CONFIG = "adapter_config.json"


class ServedModels:
    """Policies of a server, by the names that requests use.

    Each policy of a run is served under its own name. A single policy is also served under `word`.

    Args:
        word: A run, a checkpoint, a model or an adapter, given as a folder or a name.
        compute: Device, number types and memory limits of the models.

    Attributes:
        policies: Policies by name.
        version: Iteration of the checkpoint; without a checkpoint, the number of reloads.
        source: Folder of the weights, or name of the model.

    Raises:
        ModelNotFoundError: If there is no such model.
        CheckpointError: If the run has no checkpoint, or a damaged one.
    """

    def __init__(self, word: str, compute: ComputeOptions) -> None:
        self._compute = compute
        self._bases: dict[object, Policy] = {}
        self.source = str(newest(Path(word)) or word)
        folders = _policy_folders(Path(self.source))
        self.policies = {name: self._open(name, folder) for name, folder in folders.items()}
        self._names = dict.fromkeys(self.policies)
        self.version = _number_of(Path(self.source)) or 0
        self._alias = word if len(self.policies) == 1 else None

    @property
    def names(self) -> list[str]:
        """Preferred name of each policy."""
        return [self._alias] if self._alias is not None else list(self.policies)

    def policy(self, name: str) -> Policy | None:
        """Return the policy with this name; None if there is none."""
        if name == self._alias:
            return next(iter(self.policies.values()))
        return self.policies.get(name)

    def reload(self, path: Path) -> None:
        """Load other weights into the same models; if that fails, restore the current ones.

        Args:
            path: A run, whose newest checkpoint is loaded, a checkpoint, or the folder of a model.

        Raises:
            CheckpointError: If the folder does not contain weights of these models.
            MlrlError: If it contains a model that is not supported.
        """
        try:
            path = newest(path) or path
            self._load(path)
        except MlrlError:
            raise
        except Exception as error:  # libraries raise errors of any type for damaged files
            message = f"{str(path)!r} cannot be loaded, it may be damaged: {one_line(error)}"
            raise CheckpointError(message) from error

    def _load(self, path: Path) -> None:
        folders = _policy_folders(path)
        if len(self.policies) == len(folders) == 1:
            folders = dict(zip(self.policies, folders.values(), strict=True))
        if set(folders) != set(self.policies):
            raise CheckpointError(
                f"{str(path)!r} holds {', '.join(folders)}; the server has "
                f"{', '.join(self.policies)}"
            )
        try:
            self._read(folders)
        except Exception:
            if Path(self.source).is_dir():
                self._read(_folders_by_name(self.policies, Path(self.source)))
            raise
        number = _number_of(path)
        self.version = self.version + 1 if number is None else number
        self.source = str(path)

    def _read(self, folders: Mapping[str, Path]) -> None:
        for name, folder in folders.items():
            with reading(folder):
                self.policies[name].load(folder)

    def _open(self, name: str, folder: Path) -> Policy:
        """Load a policy from a folder or name; adapters of the same base model share it."""
        if not (folder / BASE_FILE).exists() or not (folder / WEIGHTS_FILE).exists():
            return load_policy(str(folder), self._compute)
        source, config = _read_adapter(folder)
        key = (source, config.rank, config.alpha, tuple(config.targets))
        if key not in self._bases:
            self._bases[key] = load_policy(source, self._compute)
            self._bases[key].freeze(config, source)
        policy = self._bases[key].with_adapter(name, 0)
        policy.load(folder)
        return policy


def is_run(path: Path) -> bool:
    """Return whether a path is a run directory."""
    return (path / CONFIG_FILE).is_file()


def newest(path: Path) -> Path | None:
    """Return the newest checkpoint of a run; None if the path is not a run.

    Raises:
        CheckpointError: If the run has no checkpoint yet.
    """
    if not is_run(path):
        return None
    found = latest_checkpoint(path)
    if found is None:
        raise CheckpointError(f"{str(path)!r} has no checkpoint yet")
    return found


def _policy_folders(path: Path) -> dict[str, Path]:
    """Return the folder of each policy of a checkpoint; any other path is a single policy."""
    if (path / STATE_FILE).is_file():
        path = path / LEARNER_FOLDER
        if not (path / TEAM_FILE).is_file():
            raise CheckpointError(f"{str(path)!r} holds no language models")
    if (path / TEAM_FILE).is_file():
        return {name: path / name for name in read_policy_names(path).values()}
    return {path.name or str(path): path}


def _folders_by_name(policies: Mapping[str, Policy], path: Path) -> dict[str, Path]:
    folders = _policy_folders(path)
    if len(folders) == 1:
        return dict(zip(policies, folders.values(), strict=True))
    return folders


def _number_of(path: Path) -> int | None:
    digits = path.name.removeprefix(STEP_PREFIX)
    return int(digits) if path.name.startswith(STEP_PREFIX) and digits.isdigit() else None


def _read_adapter(folder: Path) -> tuple[str, AdapterConfig]:
    """Return the base model and the configuration of an adapter that `Policy.save` wrote."""
    try:
        source = str(json.loads((folder / BASE_FILE).read_text())["source"])
        stored: dict[str, Any] = json.loads((folder / ADAPTER_CONFIG).read_text())
        config = AdapterConfig(
            rank=int(stored["r"]),
            alpha=int(stored["lora_alpha"]),
            targets=tuple(sorted(stored["target_modules"])),
        )
    except (OSError, ValueError, KeyError, TypeError, ConfigError) as error:
        raise CheckpointError(f"the adapter in {str(folder)!r} is damaged: {error}") from None
    return source, config
