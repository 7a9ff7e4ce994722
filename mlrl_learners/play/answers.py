"""Answers of all players to the nodes of a tree level, and the joint actions of these answers."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence

from mlrl_envs.errors import InfraError
from mlrl_learners.play.branches import Branch
from mlrl_learners.processes.work_sharing import world
from mlrl_learners.selfplay.seats import Seats, answer_all
from mlrl_learners.types import Actor, AgentID, Completion, JointMode, RolloutConfig

__all__ = ["answer_level"]


def answer_level(
    level: Sequence[Branch], actor: Actor, config: RolloutConfig, seats: Sequence[Seats]
) -> dict[int, InfraError]:
    """Answer all branches as one batch, or tree by tree if a server of a player fails.

    Returns:
        Error of each tree that could not be answered.

    Raises:
        InfraError: If a player fails and there are several processes, which ask in step.
    """
    try:
        _answer_batch(level, actor, config, seats)
    except InfraError:
        if world().size > 1:
            raise
    else:
        return {}
    errors: dict[int, InfraError] = {}
    for tree in dict.fromkeys(branch.tree for branch in level):
        try:
            _answer_batch([each for each in level if each.tree == tree], actor, config, seats)
        except InfraError as error:
            errors[tree] = error
    return errors


def _answer_batch(
    level: Sequence[Branch], actor: Actor, config: RolloutConfig, seats: Sequence[Seats]
) -> None:
    answers = answer_all(
        [branch.observations for branch in level],
        actor,
        [seats[branch.tree] for branch in level],
        [branch.env for branch in level],
        num_samples=config.num_samples,
        explore=True,
    )
    for branch, completions in zip(level, answers, strict=True):
        branch.completions = completions
        branch.actions = _joint_actions(completions, config.joint_mode, seats[branch.tree])


def _joint_actions(
    completions: Mapping[AgentID, Sequence[Completion]],
    mode: JointMode,
    opponents: Collection[AgentID] = (),
) -> list[dict[AgentID, int]]:
    """Return the index of each agent's sample in each joint action.

    The one answer of an opponent is part of every joint action.
    """
    groups = {agent: samples for agent, samples in completions.items() if agent not in opponents}
    sizes = [range(len(samples)) for samples in groups.values()]
    combined: Iterable[tuple[int, ...]] = itertools.product(*sizes)
    if mode == "aligned" and groups:
        combined = zip(*sizes, strict=True)
    first = dict.fromkeys(completions, 0)
    return [first | dict(zip(groups, combination, strict=True)) for combination in combined]
