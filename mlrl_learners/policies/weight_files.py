"""A model's weights in a folder, whole, whether they lie in pieces in memory or not."""

from pathlib import Path
from typing import Any

from mlrl_learners.engine import sharding
from mlrl_learners.errors import CheckpointError

__all__ = ["load", "save"]


def save(model: Any, folder: Path) -> None:  # noqa: ANN401 - transformers ships no types
    """Write a folder that `transformers` loads; every process must call it."""
    if not sharding.is_sharded(model):
        model.save_pretrained(folder)
        return
    weights = sharding.whole_weights(model)  # all take part, one of them writes
    if weights:
        model.save_pretrained(folder, state_dict=weights)


def load(model: Any, family: type[Any], folder: Path) -> None:  # noqa: ANN401
    """Read back what `save` wrote, into a model.

    Args:
        model: Whose weights are overwritten; they may lie in pieces.
        family: Its class before it was cut up.
        folder: Where the weights are.

    Raises:
        CheckpointError: If the folder holds no weights, or those of another model.
    """
    dtype = next(model.parameters()).dtype
    try:
        saved = family.from_pretrained(folder, dtype=dtype, local_files_only=True)
        sharding.load_weights(model, saved.state_dict())
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise CheckpointError(f"weights in {str(folder)!r} do not fit: {reason}") from error
