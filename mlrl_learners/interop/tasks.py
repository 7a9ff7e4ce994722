"""Helpers of the adapters: environments with `num_tasks`, and rows as a `datasets.Dataset`."""

from collections.abc import Mapping, Sequence
from typing import Any

import mlrl_envs
from mlrl_learners.errors import ConfigError

__all__ = ["as_dataset", "make_counted"]


def make_counted(env_id: str, options: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any PettingZoo parallel environment
    """Make an environment that has a number of tasks.

    Raises:
        ConfigError: If the environment has no `num_tasks`.
    """
    env = mlrl_envs.make(env_id, **options)
    if getattr(env, "num_tasks", None) is None:
        raise ConfigError(f"{env_id} does not say how many tasks it has (num_tasks)")
    return env


def as_dataset(rows: Sequence[Mapping[str, Any]]) -> Any:  # noqa: ANN401 - datasets has no types
    """Return rows as a `datasets.Dataset`.

    Raises:
        ConfigError: If the package is not installed.
    """
    try:
        from datasets import Dataset
    except ImportError as error:
        raise ConfigError("a Dataset needs 'datasets': pip install 'mlrl[data]'") from error
    return Dataset.from_list([dict(row) for row in rows])
