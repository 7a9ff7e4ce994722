"""Minimal replacements for `datasets` and `wandb`, which comlrl imports."""

import contextlib
import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ListDataset", "stand_in"]


class ListDataset(list[Mapping[str, object]]):
    """Part of `datasets.Dataset` that the loader of a trainer needs."""

    @classmethod
    def from_list(cls, rows: Sequence[Mapping[str, object]]) -> "ListDataset":
        """Return the rows."""
        return cls(rows)


def stand_in() -> None:
    """Install replacements for `datasets` and `wandb` if they are missing."""
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
    """Return an empty module that `find_spec` finds, which libraries use to detect packages."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    return module


def _nothing(*_: object, **__: object) -> None:
    return None
