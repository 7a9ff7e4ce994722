"""Growth of rollout trees, in groups that do not wait for one another.

All nodes of a level of a group are answered as one batch. Which trees are a group follows from the
number of prompts (see `Groups`), so that results do not depend on time; groups grow as
`mlrl_learners.play.growth` says.

With several processes, whole groups are divided between them, each played by one process; a single
group is played in step, each environment in one of them.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from mlrl_envs.errors import InfraError
from mlrl_learners.play.branches import Branch, freeze
from mlrl_learners.play.growth import Group, grow_groups
from mlrl_learners.play.steps import (
    LOCAL_STEPS,
    EnvReset,
    has_artificial_limit,
    reset_everywhere,
)
from mlrl_learners.processes.work_sharing import alone, gather, share, world
from mlrl_learners.selfplay.seats import Seats, names_of
from mlrl_learners.types import (
    Actor,
    AgentID,
    FailedEpisode,
    Rollout,
    RolloutConfig,
    Spectator,
)

__all__ = ["Groups", "Tree", "play_trees"]


@runtime_checkable
class Groups(Actor, Protocol):
    """Actor that answers groups of trees apart from one another.

    Players may have the attribute `parallel_calls`, the number of them that may be asked at the
    same time, 1 by default.
    """

    def players(self, asked: Mapping[AgentID, int], num_samples: int) -> Sequence[Actor]:
        """Return the player of each group; what it answers must not depend on the others.

        Args:
            asked: Number of prompts of each agent in the first turn of all trees, if all trees
                begin like the first one.
            num_samples: Answers to each.
        """
        ...


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


def play_trees(
    trees: Sequence[Tree], actor: Actor, config: RolloutConfig, env_id: str
) -> list[Rollout | FailedEpisode]:
    """Return the rollout of each tree, or its failure, in order and in all processes.

    Args:
        trees: What they grow from.
        actor: Plays all agents without an opponent.
        config: Samples per node, joint mode and branching.
        env_id: Id of the environment, stored in the rollouts.
    """
    everyone = list(range(len(trees)))
    resets = _reset(trees, everyone if world().size == 1 else everyone[:1])
    groups = _groups(trees, actor, config, resets)
    if world().size == 1:
        found = _play(trees, groups, resets, config, env_id)
    elif len(groups) == 1:
        found = _play(trees, groups, _reset(trees, everyone), config, env_id)
    else:
        ours = [groups[number] for number in share([1.0] * len(groups))]
        with alone():
            mine = [number for _, part in ours for number in part]
            found = _play(trees, ours, _reset(trees, mine), config, env_id)
        found = gather(found)
    return [found[number] for number in everyone]


def _reset(trees: Sequence[Tree], numbers: Sequence[int]) -> dict[int, EnvReset | InfraError]:
    chosen = [trees[number] for number in numbers]
    with contextlib.nullcontext() if _are_parallel(chosen) else LOCAL_STEPS:
        found = reset_everywhere(
            [tree.env for tree in chosen],
            [tree.options for tree in chosen],
            [tree.seed for tree in chosen],
        )
    return dict(zip(numbers, found, strict=True))


def _are_parallel(trees: Sequence[Tree]) -> bool:
    """Return whether their environments may be reset and stepped in several threads at a time."""
    return all(getattr(tree.env, "parallel_steps", False) for tree in trees)


def _groups(
    trees: Sequence[Tree],
    actor: Actor,
    config: RolloutConfig,
    resets: Mapping[int, EnvReset | InfraError],
) -> list[tuple[Actor, range]]:
    """Return the player and the trees of each group.

    Opponents, and actors that read the environments, have one state for all trees.
    """
    players: Sequence[Actor] = [actor]
    first = resets.get(0)
    is_apart = not isinstance(actor, Spectator) and not any(tree.seats for tree in trees)
    if isinstance(actor, Groups) and is_apart and isinstance(first, EnvReset):
        asked = dict.fromkeys(first.observations, len(trees))
        players = actor.players(asked, config.num_samples)
    count = len(players)
    ends = [number * len(trees) // count for number in range(count + 1)]
    return [(player, range(ends[k], ends[k + 1])) for k, player in enumerate(players)]


def _play(
    trees: Sequence[Tree],
    parts: Sequence[tuple[Actor, range]],
    resets: Mapping[int, EnvReset | InfraError],
    config: RolloutConfig,
    env_id: str,
) -> dict[int, Rollout | FailedEpisode]:
    """Play some groups, whose trees have been reset; return the result of each tree."""
    errors = {number: each for number, each in resets.items() if isinstance(each, InfraError)}
    roots = _roots(trees, resets)
    groups = [
        Group(player, [roots[number] for number in part if number in roots])
        for player, part in parts
    ]
    errors |= grow_groups(
        groups,
        config,
        [tree.seats for tree in trees],
        [tree.seed for tree in trees],
        in_threads=_are_parallel(trees),
    )
    found: dict[int, Rollout | FailedEpisode] = {}
    for number, reset in resets.items():
        tree, given = trees[number], trees[number].options.get("task_index", "")
        if isinstance(reset, InfraError) or number in errors:
            error = errors[number]
            task_id = str(given) if isinstance(reset, InfraError) else reset.task_id
            kind = type(error).__name__
            found[number] = FailedEpisode(env_id, task_id, tree.seed, kind, str(error))
            continue
        found[number] = Rollout(
            env_id,
            reset.task_id,
            reset.agents,
            freeze(roots[number]),
            tree.seed,
            has_artificial_limit(tree.env),
            names_of(tree.seats),
            reset.env_name,
        )
    return found


def _roots(trees: Sequence[Tree], resets: Mapping[int, EnvReset | InfraError]) -> dict[int, Branch]:
    """Return the root of each tree, with its environment if this process steps it."""
    ours = share([1.0] * len(trees))
    return {
        tree: Branch(
            trees[tree].env if tree in ours else None,
            tree,
            0,
            each.observations,
            each.told,
            each.agents,
        )
        for tree, each in resets.items()
        if isinstance(each, EnvReset)
    }
