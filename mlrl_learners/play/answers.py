"""Answers of all players to the nodes of a tree level."""

from collections.abc import Sequence

from mlrl_envs.errors import InfraError
from mlrl_learners.play.branches import Branch, joint_actions
from mlrl_learners.processes.work_sharing import world
from mlrl_learners.selfplay.seats import Seats, answer_all
from mlrl_learners.types import Actor, RolloutConfig

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
        [branch.asked for branch in level],
        actor,
        [seats[branch.tree] for branch in level],
        [branch.env for branch in level],
        num_samples=config.num_samples,
        explore=True,
    )
    for branch, completions in zip(level, answers, strict=True):
        branch.completions = completions
        branch.actions = joint_actions(completions, config.joint_mode, seats[branch.tree])
