"""A level of rollout trees: the answers of all players to its nodes, and what follows from them."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_envs.errors import InfraError
from mlrl_learners.play.branches import Branch, joint_actions, staying_agents
from mlrl_learners.play.steps import EnvStep, step_alone, step_envs
from mlrl_learners.processes.work_sharing import gather, world
from mlrl_learners.selfplay.seats import Seats, answer_all
from mlrl_learners.types import Actor, AgentID, RolloutConfig, continued

__all__ = ["answer_level", "step_level"]


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


def step_level(level: Sequence[Branch]) -> dict[int, InfraError]:
    """Play every joint action of every branch on a copy of its environment, as one batch.

    Returns:
        Error of each tree whose infrastructure failed.
    """
    actions = [(branch, samples) for branch in level for samples in branch.actions]
    ours = [number for number, (branch, _) in enumerate(actions) if branch.env is not None]
    envs, found = _step_copies([actions[number] for number in ours])
    env_of = dict(zip(ours, envs, strict=True))
    errors: dict[int, InfraError] = {}
    for number, step in gather(dict(zip(ours, found, strict=True))).items():
        branch, samples = actions[number]
        if isinstance(step, InfraError):
            errors[branch.tree] = step
            continue
        if step.agents:
            branch.children[len(branch.results)] = Branch(
                env_of.get(number),
                branch.tree,
                branch.turn + 1,
                step.next_observations,
                step.observations,
                staying_agents(branch, step),
                continued(branch.observations, branch.texts(samples), branch.earlier),
            )
        branch.results.append(step)
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


def _step_copies(
    actions: Sequence[tuple[Branch, Mapping[AgentID, int]]],
) -> tuple[list[Any], list[EnvStep] | list[EnvStep | InfraError]]:
    """Play joint actions on copies of environments; return the copies and the results."""
    texts = [branch.texts(samples) for branch, samples in actions]
    envs = [copy.deepcopy(branch.env) for branch, _ in actions]
    try:
        return envs, step_envs(envs, texts)
    except InfraError:  # some of the copies may have been stepped already
        envs = [copy.deepcopy(branch.env) for branch, _ in actions]
        return envs, [step_alone(*pair) for pair in zip(envs, texts, strict=True)]
