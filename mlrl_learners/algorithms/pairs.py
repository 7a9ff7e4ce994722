"""Pairs of joint answers to the same prompts, of which one earned more, out of what was played."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.functional.logprobs import TokenRow
from mlrl_learners.functional.preferences import largest_gap_pairs
from mlrl_learners.functional.returns import joint_returns
from mlrl_learners.types import AgentID, JointStep, Node, Rollout

__all__ = ["Pair", "SignedRow", "played_pairs"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two joint answers to the same prompts, of which one earned more.

    Attributes:
        better: Of each agent.
        worse: Of each agent.
        gap: Return of the better one less that of the worse one, above 0.
    """

    better: Mapping[AgentID, TokenRow]
    worse: Mapping[AgentID, TokenRow]
    gap: float


@dataclass(frozen=True, slots=True)
class SignedRow:
    """A row that adds to the margin of a pair, or takes away from it."""

    pair: int
    sign: float
    row: TokenRow


def played_pairs(rollouts: Sequence[Rollout], *, gamma: float, num_pairs: int) -> Iterator[Pair]:
    """Yield the pairs of largest gap at every decision point.

    Args:
        rollouts: What was played.
        gamma: Discount a turn, in [0, 1].
        num_pairs: Most pairs of a decision point, at least 1.
    """
    for rollout in rollouts:
        for node in rollout.root.walk():
            returns = [joint_returns(node, agent, gamma) for agent in rollout.agents]
            team = [math.fsum(each) / len(each) for each in zip(*returns, strict=True)]
            for better, worse in largest_gap_pairs(team, num_pairs):
                sides = [_rows_of_step(node, node.steps[number]) for number in (better, worse)]
                yield Pair(sides[0], sides[1], team[better] - team[worse])


def _rows_of_step(node: Node, step: JointStep) -> dict[AgentID, TokenRow]:
    answers = {agent: node.completions[agent][number] for agent, number in step.samples.items()}
    return {agent: TokenRow(each.prompt_ids, each.token_ids) for agent, each in answers.items()}
