"""Reading what a checkpoint holds of optimizers, heads and generators."""

import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from mlrl_learners.errors import CheckpointError

__all__ = ["restore"]

# What torch and the objects that take a state raise when a file is cut, overwritten or another's.
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
    """Read what `torch.save` wrote and hand it to `take`.

    Raises:
        CheckpointError: If the file is missing or damaged, or `take` refuses what it holds.
    """
    try:
        take(torch.load(path, weights_only=True))
    except DAMAGE as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CheckpointError(f"{str(path)!r} is missing, damaged or another's: {reason}") from None
