"""Groups of rollout trees: as the trainer has them, and as values for another process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mlrl_learners.seeding import CallSeeds
from mlrl_learners.selfplay.seats import Seats
from mlrl_learners.types import Actor, FailedEpisode, Rollout, RolloutConfig

__all__ = ["PlaysGroups", "Tree", "TreeGroup"]


@dataclass(frozen=True, slots=True)
class Tree:
    """What a tree grows from.

    Attributes:
        env: The environment.
        options: Options of its `reset`.
        seed: Seed of its `reset`; a chain also draws its branches from it.
        seats: Opponents.
    """

    env: Any
    options: Mapping[str, Any]
    seed: int
    seats: Seats


@dataclass(frozen=True, slots=True)
class TreeGroup:
    """A group of trees without their environments and their player.

    Attributes:
        options: Options of the `reset` of each tree.
        seeds: Seed of each tree.
        call_seeds: Seeds of the calls of the player.
        min_batches: Number of batches that a CPU cuts a large call of `act` to.
    """

    options: Sequence[Mapping[str, Any]]
    seeds: Sequence[int]
    call_seeds: CallSeeds
    min_batches: int


class PlaysGroups(Protocol):
    """Plays groups of trees in place of this process; the attribute `remote` of an actor."""

    def play(
        self,
        groups: Sequence[tuple[Actor, Sequence[Tree]]],
        config: RolloutConfig,
        env_id: str,
    ) -> list[Sequence[Rollout | FailedEpisode]]:
        """Return the result of each tree of each group.

        Args:
            groups: Player and trees of each group.
            config: Samples per node, joint mode and branching.
            env_id: Id of the environment, stored in the rollouts.
        """
        ...
