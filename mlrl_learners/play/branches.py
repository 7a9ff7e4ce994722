"""Nodes of a rollout tree under construction, and their conversion to `Node`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mlrl_learners.play.steps import EnvStep
from mlrl_learners.types import AgentID, Completion, JointStep, Node, RolloutConfig

__all__ = ["Branch", "freeze", "grow", "staying_agents"]


@dataclass(slots=True)
class Branch:
    """A node under construction: an environment before its next joint action.

    Attributes:
        env: The environment; None if another process steps it.
        tree: Index of the rollout.
        observations: Observations of the agents that act.
        told: Observations of all agents.
        staying: Agents that have not left the episode.
    """

    env: Any
    tree: int
    turn: int
    observations: Mapping[AgentID, str]
    told: Mapping[AgentID, str]
    staying: tuple[AgentID, ...]
    completions: Mapping[AgentID, list[Completion]] = field(default_factory=dict)
    actions: list[dict[AgentID, int]] = field(default_factory=list)
    results: list[EnvStep] = field(default_factory=list)
    children: "dict[int, Branch]" = field(default_factory=dict)


def grow(branch: Branch, config: RolloutConfig, draw: Random) -> list[Branch]:
    """Keep the children that the rollout continues from, and return them."""
    if config.branching == "chain" and branch.children:
        number = draw.choice(sorted(branch.children))
        branch.children = {number: branch.children[number]}
    return list(branch.children.values())


def freeze(branch: Branch) -> Node:
    """Return a branch and everything below it as a node."""
    steps = tuple(
        JointStep(
            samples=samples,
            rewards=dict(step.rewards),
            components=step.components,
            infos=step.infos,
            terminated=step.terminated,
            truncated=step.truncated,
            child=freeze(branch.children[number]) if number in branch.children else None,
            next_observations=_next_observations(branch, number),
            next_waiting=_next_waiting(branch, number),
        )
        for number, (samples, step) in enumerate(zip(branch.actions, branch.results, strict=True))
    )
    completions = {agent: tuple(samples) for agent, samples in branch.completions.items()}
    waiting = _waiting(branch.staying, branch.observations, branch.told)
    return Node(branch.turn, branch.observations, completions, steps, waiting)


def staying_agents(branch: Branch, step: EnvStep) -> tuple[AgentID, ...]:
    """Return the agents that have not left the episode after a step."""
    return tuple(agent for agent in branch.staying if agent not in step.left)


def _next_observations(branch: Branch, number: int) -> dict[AgentID, str]:
    """Return the next observations of a joint action without a child, for the critics.

    They are those of the agents that act next, or, at a turn limit, that the environment told what
    follows.
    """
    if number in branch.children:
        return {}
    step = branch.results[number]
    if step.agents:
        return step.next_observations
    return {
        agent: text for agent, text in step.observations.items() if not step.terminations.get(agent)
    }


def _next_waiting(branch: Branch, number: int) -> dict[AgentID, str]:
    """Return the next observations of agents that wait, of a joint action without a child."""
    step = branch.results[number]
    if number in branch.children or not step.agents:
        return {}
    return _waiting(staying_agents(branch, step), step.next_observations, step.observations)


def _waiting(
    staying: Sequence[AgentID], acting: Mapping[AgentID, str], told: Mapping[AgentID, str]
) -> dict[AgentID, str]:
    return {agent: told.get(agent, "") for agent in staying if agent not in acting}
