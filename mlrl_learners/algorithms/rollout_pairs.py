"""Preference pairs from rollouts: answers to the same prompts with different returns.

If all agents have the same returns, joint answers are ranked and a pair trains the whole team.
Otherwise, as in a zero-sum game, each agent's answers are ranked by its own return and a pair
trains that agent alone, because the mean over agents may be 0 for every joint answer.

In a chain only one joint answer has a known future. Where all agents act in every turn, the others
are ranked as if theirs were the same. Where agents take turns, this would rank answers by what they
earn at once, although most rewards arrive in turns of the others, so that chains are refused.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.preferences import largest_gap_pairs
from mlrl_learners.functional.returns import is_same_return, joint_returns, mean_by_sample
from mlrl_learners.types import AgentID, JointStep, Node, Rollout, RolloutConfig

__all__ = [
    "Pair",
    "StepPair",
    "are_returns_equal",
    "check_choice",
    "has_shared_returns",
    "played_pairs",
    "ranked_steps",
]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to the same prompts, as token rows.

    Attributes:
        better: Answer with the higher return, of every agent or of one.
        worse: Answer with the lower return, of the same agents.
        gap: Return of the better minus that of the worse one, above 0.
    """

    better: Mapping[AgentID, TokenRow]
    worse: Mapping[AgentID, TokenRow]
    gap: float


@dataclass(frozen=True, slots=True)
class StepPair:
    """Two joint answers of one decision point.

    Attributes:
        node: The decision point.
        better: Joint answer with the higher return.
        worse: Joint answer with the lower return.
        gap: Return of the better minus that of the worse one, above 0.
        agent: Agent whose return ranks; None for the mean over the team.
    """

    node: Node
    better: JointStep
    worse: JointStep
    gap: float
    agent: AgentID | None = None


def check_choice(rollout: RolloutConfig) -> None:
    """Check that every prompt has several answers.

    Raises:
        ConfigError: If there is one answer per prompt.
    """
    if rollout.num_samples < 2:
        raise ConfigError(
            "group.size or rollout.num_samples must be at least 2 where pairs of answers to the "
            f"same prompts are trained on, got {rollout.num_samples}"
        )


def has_shared_returns(rollouts: Iterable[Rollout], *, gamma: float) -> bool:
    """Return whether all agents have the same return for every joint answer of the rollouts.

    Args:
        rollouts: The rollouts.
        gamma: Discount factor per turn, in [0, 1].

    Raises:
        ConfigError: If the rollouts are chains in which agents take turns.
    """
    return all(
        are_returns_equal(_returns(node, rollout.agents, gamma).values())
        for rollout in rollouts
        for node in rollout.root.walk()
    )


def are_returns_equal(returns: Iterable[Sequence[float]]) -> bool:
    """Return whether all agents have the same returns, up to rounding."""
    first, *others = [*returns] or [()]
    return all(is_same_return(a, b) for other in others for a, b in zip(first, other, strict=True))


def ranked_steps(
    rollouts: Sequence[Rollout], *, gamma: float, num_pairs: int, by_agent: bool = False
) -> Iterator[StepPair]:
    """Yield the pairs of joint answers with the largest gaps at every decision point.

    Args:
        rollouts: The rollouts.
        gamma: Discount factor per turn, in [0, 1].
        num_pairs: Largest number of pairs per decision point (and agent, with `by_agent`), at
            least 1.
        by_agent: Rank by the return of each agent that acts in turn instead of by the mean over
            the team.
    """
    for rollout in rollouts:
        for node in rollout.root.walk():
            if by_agent:
                returns = _returns(node, rollout.agents, gamma)
                for agent in (each for each in returns if each in node.completions):
                    yield from _step_pairs(node, returns[agent], num_pairs, agent)
            else:
                team = _team_returns(node, rollout.agents, gamma)
                yield from _step_pairs(node, team, num_pairs)


def played_pairs(
    rollouts: Sequence[Rollout], *, gamma: float, num_pairs: int, agents: Sequence[AgentID]
) -> Iterator[Pair]:
    """Yield the pairs with the largest gaps at every decision point, as sampled tokens.

    Args:
        rollouts: The rollouts.
        gamma: Discount factor per turn, in [0, 1].
        num_pairs: Largest number of pairs per decision point (and agent, where returns differ
            between agents).
        agents: The trained agents; where returns differ, only their answers are paired. Decision
            points at which none of them acts make no pairs.
    """
    for rollout in rollouts:
        for node in rollout.root.walk():
            if not any(agent in agents for agent in node.completions):
                continue  # a pair would have a margin of 0 and no gradient
            returns = _returns(node, rollout.agents, gamma)
            if are_returns_equal(returns.values()):
                team = _team_returns(node, rollout.agents, gamma)
                for pair in _step_pairs(node, team, num_pairs):
                    better, worse = (_rows_of_step(node, x) for x in (pair.better, pair.worse))
                    yield Pair(better, worse, pair.gap)
            else:
                for agent in (each for each in node.completions if each in agents):
                    yield from _own_pairs(node, agent, returns[agent], num_pairs)


def _returns(node: Node, agents: Sequence[AgentID], gamma: float) -> dict[AgentID, list[float]]:
    """Return the returns of all joint answers, for each agent that answers or is rewarded there.

    Raises:
        ConfigError: If a chain did not continue from an answer after which an agent waits.
    """
    if any(step.next_waiting for step in node.steps):
        raise ConfigError(
            "pairs of answers in a chain have no known futures where agents take turns: set "
            "group.branching to tree, with a small group.size"
        )
    present = set(node.completions).union(*(step.rewards for step in node.steps))
    return {agent: joint_returns(node, agent, gamma) for agent in agents if agent in present}


def _team_returns(node: Node, agents: Sequence[AgentID], gamma: float) -> list[float]:
    """Return the mean return over all agents, absent ones included, of each joint answer."""
    returns = [joint_returns(node, agent, gamma) for agent in agents]
    return [math.fsum(each) / len(each) for each in zip(*returns, strict=True)]


def _step_pairs(
    node: Node, returns: Sequence[float], num_pairs: int, agent: AgentID | None = None
) -> Iterator[StepPair]:
    for better, worse in largest_gap_pairs(returns, num_pairs):
        gap = returns[better] - returns[worse]
        yield StepPair(node, node.steps[better], node.steps[worse], gap, agent)


def _own_pairs(
    node: Node, agent: AgentID, returns: Sequence[float], num_pairs: int
) -> Iterator[Pair]:
    """Yield pairs of an agent's answers, ranked by their mean return over joint answers."""
    means = mean_by_sample(node, agent, returns)
    rows = [TokenRow(each.prompt_ids, each.token_ids) for each in node.completions[agent]]
    for better, worse in largest_gap_pairs(means, num_pairs):
        yield Pair({agent: rows[better]}, {agent: rows[worse]}, means[better] - means[worse])


def _rows_of_step(node: Node, step: JointStep) -> dict[AgentID, TokenRow]:
    answers = {agent: node.completions[agent][number] for agent, number in step.samples.items()}
    return {agent: TokenRow(each.prompt_ids, each.token_ids) for agent, each in answers.items()}
