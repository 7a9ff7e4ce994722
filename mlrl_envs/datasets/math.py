"""Splits of the generated math problems."""

from functools import lru_cache

from mlrl_envs.datasets.gsm8k import load_gsm8k
from mlrl_envs.datasets.math_problems import make_problems
from mlrl_envs.datasets.sources import SAMPLE
from mlrl_envs.errors import unknown_name
from mlrl_envs.tasks import MathTask

__all__ = ["SIZES", "load_problems"]

SIZES = {"train": 1000, "eval": 200}
_PARTS = {"train": ("train",), "eval": ("eval",), "test": ("eval",), "all": ("train", "eval")}


@lru_cache(maxsize=16)
def load_problems(
    split: str, *, seed: int, topics: tuple[str, ...], levels: tuple[int, ...]
) -> tuple[MathTask, ...]:
    """Return the generated problems of a split.

    Args:
        split: `"train"` (1000 problems), `"eval"` or `"test"` (the same 200), `"all"`, or
            `"sample"`, ten fixed rows in the schema of GSM8K that ignore the other arguments.
        seed: Seed of the problems.
        topics: Some of `math_problems.TOPICS`.
        levels: Some of `math_problems.LEVELS`.

    Raises:
        UnknownNameError: If there is no such split.
    """
    if split == SAMPLE:
        return load_gsm8k(SAMPLE)
    if split not in _PARTS:
        raise unknown_name("split", split, [*_PARTS, SAMPLE])
    return tuple(
        task
        for part in _PARTS[split]
        for task in make_problems(part, size=SIZES[part], seed=seed, topics=topics, levels=levels)
    )
