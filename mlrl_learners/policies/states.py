"""Loading of optimizer, head and generator states from a checkpoint."""

import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from mlrl_learners.errors import CheckpointError

__all__ = ["restore"]

# Raised by torch and by `load_state_dict` for truncated, overwritten or foreign files.
DAMAGE = (
    OSError,
    RuntimeError,
    ValueError,
    EOFError,
    KeyError,
    TypeError,
    AttributeError,
    pickle.UnpicklingError,
    struct.error,
)


def restore(path: Path, take: Callable[[Any], object]) -> None:
    """Load a file that `torch.save` wrote, and pass its content to `take`.

    Raises:
        CheckpointError: If the file is missing or damaged, or `take` raises an error for it.
    """
    try:
        take(_load(path))
    except DAMAGE as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CheckpointError(f"{str(path)!r} is missing, damaged or another's: {reason}") from None


def _load(path: Path) -> Any:  # noqa: ANN401 - a file may hold any state
    """Read a file; torch's own reasons are long, and advise to run code from the file."""
    try:
        return torch.load(path, weights_only=True)
    except OSError:
        raise
    except DAMAGE:
        raise ValueError("it is not a whole file of torch.save") from None
