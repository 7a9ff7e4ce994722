"""Nodes of a rollout tree under construction, and their conversion to `Node`."""

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mlrl_learners.functional.replay import replay_actions
from mlrl_learners.play.steps import EnvStep
from mlrl_learners.types import (
    AgentID,
    Completion,
    JointMode,
    JointStep,
    Node,
    RolloutConfig,
    conversations,
)

__all__ = ["Branch", "freeze", "grow", "joint_actions", "staying_agents"]


@dataclass(slots=True)
class Branch:
    """A node under construction: an environment before its next joint action.

    Attributes:
        env: The environment; None if another process steps it.
        tree: Index of the rollout.
        observations: Observations of the agents that act.
        told: Observations of all agents.
        staying: Agents that have not left the episode.
        earlier: Earlier turns of each agent, which its conversation shows.
    """

    env: Any
    tree: int
    turn: int
    observations: Mapping[AgentID, str]
    told: Mapping[AgentID, str]
    staying: tuple[AgentID, ...]
    earlier: Mapping[AgentID, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    completions: Mapping[AgentID, list[Completion]] = field(default_factory=dict)
    actions: list[dict[AgentID, int]] = field(default_factory=list)
    results: list[EnvStep] = field(default_factory=list)
    children: "dict[int, Branch]" = field(default_factory=dict)

    @property
    def asked(self) -> dict[AgentID, str]:
        """What players read: the observations, with the earlier turns of their agents."""
        return conversations(self.observations, self.earlier)

    def texts(self, samples: Mapping[AgentID, int]) -> dict[AgentID, str]:
        """Return the answers of a joint action."""
        return {agent: self.completions[agent][each].text for agent, each in samples.items()}


def joint_actions(
    completions: Mapping[AgentID, Sequence[Completion]],
    mode: JointMode,
    opponents: Collection[AgentID] = (),
) -> list[dict[AgentID, int]]:
    """Return the index of each agent's sample in each joint action.

    The one answer of an opponent is part of every joint action.
    """
    groups = {agent: samples for agent, samples in completions.items() if agent not in opponents}
    first = dict.fromkeys(completions, 0)
    if mode == "replay":
        sizes_of = {agent: len(samples) for agent, samples in groups.items()}
        return [first | action for action in replay_actions(sizes_of)]
    sizes = [range(len(samples)) for samples in groups.values()]
    combined: Iterable[tuple[int, ...]] = itertools.product(*sizes)
    if mode == "aligned" and groups:
        combined = zip(*sizes, strict=True)
    return [first | dict(zip(groups, combination, strict=True)) for combination in combined]


def grow(
    branch: Branch, config: RolloutConfig, draw: Random, opponents: Collection[AgentID] = ()
) -> list[Branch]:
    """Keep the children that the rollout continues from, and return them.

    Args:
        branch: A node whose joint actions were played.
        config: Branching.
        draw: Draws the joint action of a chain, and one of equal reward if it is greedy.
        opponents: Agents whose rewards are not the team's.
    """
    if config.branching == "greedy":
        number = _best(branch, draw, opponents)
        branch.children = {n: child for n, child in branch.children.items() if n == number}
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


def _best(branch: Branch, draw: Random, opponents: Collection[AgentID]) -> int:
    """Return the joint action of highest mean reward, a drawn one if several have it."""
    rewards = [
        math.fsum(value for agent, value in step.rewards.items() if agent not in opponents)
        for step in branch.results
    ]
    return draw.choice([number for number, each in enumerate(rewards) if each == max(rewards)])


def staying_agents(branch: Branch, step: EnvStep) -> tuple[AgentID, ...]:
    """Return the agents that have not left the episode after a step."""
    left = step.left
    return tuple(agent for agent in branch.staying if agent not in left)


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
