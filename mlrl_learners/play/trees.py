"""Growth of rollout trees, in groups that do not wait for one another.

All nodes of a level of a group are answered as one batch. Which trees are a group follows from the
number of prompts (see `Groups`), so that results do not depend on time; groups grow as
`mlrl_learners.play.growth` says.

With several processes, whole groups are divided between them, each played by one process; a single
group is played in step, each environment in one of them. An actor with the attribute `remote` (see
`PlaysGroups`) has processes that play all groups.
"""

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from mlrl_envs.errors import InfraError
from mlrl_learners.play.branches import Branch, freeze
from mlrl_learners.play.groups import PlaysGroups, Tree
from mlrl_learners.play.growth import Group, grow_groups
from mlrl_learners.play.steps import (
    LOCAL_STEPS,
    EnvReset,
    has_artificial_limit,
    reset_everywhere,
)
from mlrl_learners.processes.work_sharing import alone, gather, share, world
from mlrl_learners.selfplay.seats import names_of
from mlrl_learners.types import (
    Actor,
    AgentID,
    FailedEpisode,
    Rollout,
    RolloutConfig,
    Spectator,
)

__all__ = ["Groups", "Tree", "play_groups", "play_trees"]


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
    remote = _remote(trees, actor)
    is_alone = world().size == 1 and remote is None
    resets = _reset(trees, everyone if is_alone else everyone[:1])
    groups = _groups(trees, actor, config, resets)
    if remote is not None:
        parts = [(player, [trees[number] for number in part]) for player, part in groups]
        return [each for found in remote.play(parts, config, env_id) for each in found]
    if is_alone:
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


def play_groups(
    groups: Sequence[tuple[Actor, Sequence[Tree]]], config: RolloutConfig, env_id: str
) -> list[list[Rollout | FailedEpisode]]:
    """Return the result of each tree of each group, played in this process.

    Args:
        groups: Player and trees of each group.
        config: Samples per node, joint mode and branching.
        env_id: Id of the environment, stored in the rollouts.
    """
    trees = [tree for _, part in groups for tree in part]
    ends = list(itertools.accumulate((len(part) for _, part in groups), initial=0))
    ranges = [range(first, end) for first, end in itertools.pairwise(ends)]
    parts = [(player, each) for (player, _), each in zip(groups, ranges, strict=True)]
    found = _play(trees, parts, _reset(trees, range(len(trees))), config, env_id)
    return [[found[number] for number in each] for each in ranges]


def _remote(trees: Sequence[Tree], actor: Actor) -> PlaysGroups | None:
    """Return what plays the trees in place of this process; it knows no opponents."""
    return None if any(tree.seats for tree in trees) else getattr(actor, "remote", None)


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
