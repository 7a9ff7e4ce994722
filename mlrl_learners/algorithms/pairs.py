"""Pairs of answers to the same prompts of which one earned more, as they were played.

Where all agents earn the same, joint answers are ranked and a pair concerns the whole team. Where
they do not, as in a zero-sum game, each agent ranks its own answers by its own return, and a pair
concerns that agent alone: the mean over agents says nothing there, and may always be 0.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.preferences import largest_gap_pairs
from mlrl_learners.functional.returns import joint_returns, mean_by_sample
from mlrl_learners.types import AgentID, JointStep, Node, Rollout, RolloutConfig

__all__ = [
    "Pair",
    "SignedRow",
    "StepPair",
    "check_choice",
    "is_pay_shared",
    "is_same",
    "played_pairs",
    "ranked_steps",
]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to the same prompts, of which one earned more.

    Attributes:
        better: Of each agent of the team, or of one agent where pay is its own.
        worse: Of the same agents.
        gap: Return of the better one less that of the worse one, above 0.
    """

    better: Mapping[AgentID, TokenRow]
    worse: Mapping[AgentID, TokenRow]
    gap: float


@dataclass(frozen=True, slots=True)
class StepPair:
    """Two joint answers of one decision point, of which one earned more.

    Attributes:
        node: Where they were played.
        better: The one that earned more.
        worse: The other one.
        gap: Return of the better one less that of the worse one, above 0.
        agent: Whose return it is; None for the mean over the team.
    """

    node: Node
    better: JointStep
    worse: JointStep
    gap: float
    agent: AgentID | None = None


@dataclass(frozen=True, slots=True)
class SignedRow:
    """A row that adds to the margin of a pair, or takes away from it."""

    pair: int
    sign: float
    row: TokenRow


def check_choice(rollout: RolloutConfig) -> None:
    """Check that the same prompts are answered more than once.

    Raises:
        ConfigError: If they are not.
    """
    if rollout.num_samples < 2:
        raise ConfigError(
            "group_size or rollout.num_samples must be at least 2 where pairs of answers to the "
            f"same prompts are learnt from, got {rollout.num_samples}"
        )


def is_pay_shared(rollouts: Iterable[Rollout], *, gamma: float) -> bool:
    """Return whether all agents earned the same for every joint answer of every decision point.

    Args:
        rollouts: What was played.
        gamma: Discount a turn, in [0, 1].
    """
    return all(
        is_same(_returns(node, rollout.agents, gamma).values())
        for rollout in rollouts
        for node in rollout.root.walk()
    )


def is_same(returns: Iterable[Sequence[float]]) -> bool:
    """Return whether all agents have the same returns, up to rounding."""
    first, *others = [*returns] or [()]
    return all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
        for other in others
        for a, b in zip(first, other, strict=True)
    )


def ranked_steps(
    rollouts: Sequence[Rollout], *, gamma: float, num_pairs: int, by_agent: bool = False
) -> Iterator[StepPair]:
    """Yield the pairs of joint answers of largest gap at every decision point.

    Args:
        rollouts: What was played.
        gamma: Discount a turn, in [0, 1].
        num_pairs: Most pairs of a decision point (and of an agent, with `by_agent`), at least 1.
        by_agent: Rank by the return of each agent that is paid there, one after the other, instead
            of by the mean over the team.
    """
    for rollout in rollouts:
        for node in rollout.root.walk():
            if by_agent:
                for agent, own in _returns(node, rollout.agents, gamma).items():
                    yield from _step_pairs(node, own, num_pairs, agent)
            else:
                team = _team_returns(node, rollout.agents, gamma)
                yield from _step_pairs(node, team, num_pairs)


def played_pairs(
    rollouts: Sequence[Rollout], *, gamma: float, num_pairs: int, agents: Sequence[AgentID]
) -> Iterator[Pair]:
    """Yield the pairs of largest gap at every decision point, as the tokens that were sampled.

    Args:
        rollouts: What was played.
        gamma: Discount a turn, in [0, 1].
        num_pairs: Most pairs of a decision point (and of an agent, where pay is not shared).
        agents: Who is to learn; the own answers of others make no pairs.
    """
    for rollout in rollouts:
        for node in rollout.root.walk():
            returns = _returns(node, rollout.agents, gamma)
            if is_same(returns.values()):
                team = _team_returns(node, rollout.agents, gamma)
                for pair in _step_pairs(node, team, num_pairs):
                    better, worse = (_rows_of_step(node, x) for x in (pair.better, pair.worse))
                    yield Pair(better, worse, pair.gap)
            else:
                for agent in (each for each in node.completions if each in agents):
                    yield from _own_pairs(node, agent, returns[agent], num_pairs)


def _returns(node: Node, agents: Sequence[AgentID], gamma: float) -> dict[AgentID, list[float]]:
    """Return, for each agent that answers or is paid at a node, its return of each joint answer."""
    present = set(node.completions).union(*(step.rewards for step in node.steps))
    return {agent: joint_returns(node, agent, gamma) for agent in agents if agent in present}


def _team_returns(node: Node, agents: Sequence[AgentID], gamma: float) -> list[float]:
    """Return the mean over all agents, those that have left too, of each joint answer's return."""
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
    """Yield pairs of an agent's own answers, each worth the mean of the joint answers it is in."""
    worth = mean_by_sample(node, agent, returns)
    rows = [TokenRow(each.prompt_ids, each.token_ids) for each in node.completions[agent]]
    for better, worse in largest_gap_pairs(worth, num_pairs):
        yield Pair({agent: rows[better]}, {agent: rows[worse]}, worth[better] - worth[worse])


def _rows_of_step(node: Node, step: JointStep) -> dict[AgentID, TokenRow]:
    answers = {agent: node.completions[agent][number] for agent, number in step.samples.items()}
    return {agent: TokenRow(each.prompt_ids, each.token_ids) for agent, each in answers.items()}
