"""Options and tasks that all games have in common."""

from dataclasses import dataclass

from mlrl_envs.config import check_choice, check_int, check_number
from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.types import Task

__all__ = ["GameConfig", "GameTask", "make_tasks"]

SIZES = {"train": 1000, "eval": 200, "sample": 10}
FIRST_SEEDS = {"train": 0, "eval": 10**7, "sample": 2 * 10**7}
ILLEGAL = ("random", "lose", "retry")


@dataclass(frozen=True, slots=True)
class GameTask(Task):
    """A game to play.

    Attributes:
        seed: Seed of all chance of the game, and of moves that replace illegal ones.
    """

    seed: int


@dataclass(frozen=True)
class GameConfig:
    """Options of every game.

    Attributes:
        split: `"train"`, `"eval"`, `"sample"`, or `"all"` (train and eval). No two share a seed.
        num_tasks: Number of seeds; None for 1000 in `train`, 200 in `eval`, 10 in `sample`.
        max_turns: Turn limit, at which an episode is truncated; None for that of the game.
        illegal: What happens to an answer that names no legal move: `"random"` plays a legal move
            drawn from the seed, `"lose"` ends the game with the lowest reward, at most 0, `"retry"`
            asks a second time and then plays a random move.
        illegal_penalty: Subtracted from the reward for a random move that replaces an illegal one,
            at least 0.
    """

    split: str = "train"
    num_tasks: int | None = None
    max_turns: int | None = None
    illegal: str = "random"
    illegal_penalty: float = 0.5

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        if self.split not in (*SIZES, "all"):
            raise unknown_name("split", self.split, [*SIZES, "all"])
        for name, high in (("num_tasks", 10**6), ("max_turns", 10**6)):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name), 1, high)
        check_choice("illegal", self.illegal, ILLEGAL)
        check_number("illegal_penalty", self.illegal_penalty)
        if self.illegal_penalty < 0:
            raise InvalidArgumentError(
                f"illegal_penalty must be at least 0, got {self.illegal_penalty}"
            )


def make_tasks(name: str, config: GameConfig) -> tuple[GameTask, ...]:
    """Return the tasks of the split; `name` begins their ids."""
    parts = ("train", "eval") if config.split == "all" else (config.split,)
    return tuple(
        GameTask(f"{name}/{part}/{index}", FIRST_SEEDS[part] + index)
        for part in parts
        for index in range(config.num_tasks or SIZES[part])
    )
