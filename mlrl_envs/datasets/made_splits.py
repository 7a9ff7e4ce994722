"""Splits of tasks made from a seed; a hash of the content decides the split of a task."""

import hashlib

from mlrl_envs.datasets.sources import SAMPLE
from mlrl_envs.errors import unknown_name

__all__ = ["SIZES", "SPLITS", "check_split", "in_eval", "parts_of"]

SIZES = {"train": 500, "eval": 100}
SPLITS = ("train", "eval", "all", SAMPLE)
EVAL_SHARE = 5  # one made task in five belongs to the split `eval`


def parts_of(split: str) -> tuple[str, ...]:
    """Return the splits of made tasks that a split consists of.

    Raises:
        UnknownNameError: If there is no such split.
    """
    check_split(split)
    return ("train", "eval") if split == "all" else (split,)


def in_eval(content: str) -> bool:
    """Return whether a made task belongs to `eval`, by a hash of its content."""
    return hashlib.sha256(content.encode()).digest()[0] % EVAL_SHARE == 0


def check_split(split: str) -> None:
    """Check the name of a split.

    Raises:
        UnknownNameError: If there is no such split.
    """
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
