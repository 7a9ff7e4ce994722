"""Options of families whose problems are functions made from a seed."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from mlrl_envs.config import check_int, checked_some
from mlrl_envs.datasets.functions import LEVELS, TOPICS, make_functions
from mlrl_envs.tasks import CodeTask

__all__ = ["MadeFunctions"]


@dataclass(frozen=True)
class MadeFunctions:
    """Which functions are made from a seed.

    Attributes:
        topics: Kinds of the argument: some of `numbers`, `words`, `text`.
        levels: Numbers of steps: some of 1, 2, 3.
        task_seed: Seed of the functions, at least 0.
        num_tasks: Number of functions; None for 500 in `train` and 100 in `eval`.
    """

    topics: Sequence[str] = TOPICS
    levels: Sequence[int] = LEVELS
    task_seed: int = 0
    num_tasks: int | None = None

    def check_functions(self) -> None:
        """Check types and ranges, and make tuples of lists.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        object.__setattr__(self, "topics", checked_some("topics", self.topics, TOPICS))
        object.__setattr__(self, "levels", checked_some("levels", self.levels, LEVELS))
        check_int("task_seed", self.task_seed, 0, 2**63)
        if self.num_tasks is not None:
            check_int("num_tasks", self.num_tasks, 1, 10**6)

    def changed_functions(self) -> list[str]:
        """Return the names of these options that differ from their defaults."""
        return [
            option.name
            for option in fields(MadeFunctions)
            if getattr(self, option.name) != option.default
        ]

    def make_functions(self, split: str) -> tuple[CodeTask, ...]:
        """Return the functions of a split.

        Raises:
            UnknownNameError: If there is no such split.
            InvalidDataError: If there are not as many functions of these topics and levels.
        """
        return make_functions(
            split,
            seed=self.task_seed,
            topics=tuple(self.topics),
            levels=tuple(self.levels),
            num_tasks=self.num_tasks,
        )
