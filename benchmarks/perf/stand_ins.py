"""Stand-ins for `datasets` and `wandb`, for a machine that lacks what comlrl imports."""

import contextlib
import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ListDataset", "stand_in"]


class ListDataset(list[Mapping[str, object]]):
    """As much of `datasets.Dataset` as a trainer's loader asks for."""

    @classmethod
    def from_list(cls, rows: Sequence[Mapping[str, object]]) -> "ListDataset":
        """Return the rows."""
        return cls(rows)


def stand_in() -> None:
    """Let comlrl have a list of rows for `datasets` and silence for `wandb`, where these lack."""
    with contextlib.suppress(ImportError):
        import datasets  # noqa: F401
    with contextlib.suppress(ImportError):
        import wandb  # noqa: F401
    if "datasets" not in sys.modules:
        module = _module("datasets")
        module.Dataset = ListDataset
        module.IterableDataset = type("IterableDataset", (), {})
        sys.modules["datasets"] = module
    if "wandb" not in sys.modules:
        silent = _module("wandb")
        silent.run, silent.log, silent.init = None, _nothing, _nothing
        sys.modules["wandb"] = silent


def _module(name: str) -> Any:  # noqa: ANN401
    """Return an empty module that `find_spec` knows: libraries ask by it what is installed."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    return module


def _nothing(*_: object, **__: object) -> None:
    return None
