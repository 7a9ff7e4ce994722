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
        take(torch.load(path, weights_only=True))
    except DAMAGE as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CheckpointError(f"{str(path)!r} is missing, damaged or another's: {reason}") from None
