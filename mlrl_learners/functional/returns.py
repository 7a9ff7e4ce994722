"""Returns over rollout trees, and groups of answers to one prompt, without torch."""

import functools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from mlrl_envs.errors import ContractError
from mlrl_learners.errors import NumericsError
from mlrl_learners.figures.means import mean
from mlrl_learners.functional.alignment import alignment_terms
from mlrl_learners.functional.credit import Credit, credited_values
from mlrl_learners.functional.presence import continues_for
from mlrl_learners.functional.reach import (
    TurnWeights,
    count_continuing,
    other_rollouts_means,
    share_futures,
    weighted_nodes,
)
from mlrl_learners.functional.replay import replay_advantages
from mlrl_learners.types import AgentID, Completion, Node, Rollout

__all__ = [
    "AnswerGroup",
    "answer_credits",
    "chain_baselines",
    "check_rollouts",
    "is_same_return",
    "joint_returns",
    "mean_by_sample",
    "rollout_groups",
    "sample_returns",
]


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """The G answers of one agent at one node, and the return of each.

    Attributes:
        agent: Agent that gave the answers.
        turn: Turn of the node, from 0.
        completions: The answers.
        returns: Return of each answer.
        weight: Weight of the node, see `mlrl_learners.functional.reach`.
        rollout: Index of the rollout of the node.
        env_name: Environment of the rollout among several of a run; empty where there is one.
        is_flat: Whether all answers have the same return if the future in a chain is credited to
            all of them.
    """

    agent: AgentID
    turn: int
    completions: tuple[Completion, ...]
    returns: tuple[float, ...]
    weight: float = 1.0
    rollout: int = 0
    env_name: str = ""
    is_flat: bool = False

    @property
    def role(self) -> str:
        """The agent, with its environment among several: `kuhn/player_0`."""
        return f"{self.env_name}/{self.agent}" if self.env_name else self.agent


def is_same_return(one: float, other: float) -> bool:
    """Return whether two returns differ by at most 1e-9, or that share of the larger one.

    The sum of the rewards of several turns differs by rounding from the same sum paid at once.
    """
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def check_rollouts(rollouts: Sequence[Rollout]) -> None:
    """Check that a learner can train on rollouts: tokens of its answers, finite rewards.

    Raises:
        ContractError: If an answer has no tokens; the message names the task, turn and agent.
        NumericsError: If a reward is not finite; the message names the same.
    """
    for rollout in rollouts:
        for node in rollout.root.walk():
            place = f"in turn {node.turn} of task {rollout.task_id!r}"
            _check_answers(node, rollout.opponents, place)
            for step in node.steps:
                for agent, reward in step.rewards.items():
                    if not math.isfinite(reward):
                        raise NumericsError(f"the reward of {agent!r} {place} is {reward}")


def _check_answers(node: Node, opponents: Collection[AgentID], place: str) -> None:
    for agent, answers in node.completions.items():
        if agent not in opponents and not all(answer.token_ids for answer in answers):
            raise ContractError(
                f"an answer of {agent!r} {place} has no token_ids, as those of a script: collect "
                "rollouts with the learner, or name the agent in opponents"
            )


def joint_returns(
    node: Node, agent: AgentID, gamma: float, baseline: float | None = None
) -> list[float]:
    """Return R_j = r_j + gamma * mean(R of the child) for each joint action j of `node`.

    In a chain, only one of the joint actions after which the episode continues has a child; the
    futures are then from `mlrl_learners.functional.reach.share_futures`.

    Args:
        node: Node of the joint actions.
        agent: Agent whose rewards are summed, those that arrive while it waits included; after it
            has left, they are 0.
        gamma: Discount factor per turn of the episode, in [0, 1].
        baseline: Expected future of a joint action, independent of the actions at this node; None
            credits the future in a chain to all joint actions after which the episode continues.
    """
    observed = _child_returns(node, agent, gamma, baseline)
    futures, other = share_futures(observed, count_continuing(node), baseline)
    left = {n: value for n, value in observed.items() if not continues_for(node.steps[n], agent)}
    futures |= left  # later rewards of the others do not concern an agent that has left
    returns = []
    for number, step in enumerate(node.steps):
        future = futures.get(number, other if continues_for(step, agent) else 0.0)
        returns.append(step.rewards.get(agent, 0.0) + gamma * future)
    return returns


def sample_returns(
    node: Node,
    agent: AgentID,
    gamma: float,
    credit: Credit = "shared",
    baseline: float | None = None,
    terms: Sequence[float] = (),
) -> list[float]:
    """Return the return of each of the agent's answers: its mean credit over joint actions.

    In `aligned` mode an answer is part of one joint action; in `cross` mode the mean is over all
    answers of its teammates. Arguments are those of `joint_returns` and `credited_values`; `terms`
    are added to the returns of the joint actions.
    """
    returns = joint_returns(node, agent, gamma, baseline)
    if terms:
        returns = [value + term for value, term in zip(returns, terms, strict=True)]
    return answer_credits(node, agent, returns, credit)


def answer_credits(
    node: Node, agent: AgentID, values: Sequence[float], credit: Credit
) -> list[float]:
    """Return the credit of each of the agent's answers, from the values of joint actions."""
    if credit == "replay":
        return replay_advantages(node, agent, values)
    return mean_by_sample(node, agent, credited_values(node, agent, values, credit))


def mean_by_sample(node: Node, agent: AgentID, joint_values: Sequence[float]) -> list[float]:
    """Return the mean of joint values over the joint actions that contain each of its answers."""
    by_sample: list[list[float]] = [[] for _ in node.completions[agent]]
    for step, value in zip(node.steps, joint_values, strict=True):
        by_sample[step.samples[agent]].append(value)
    return [mean(values) for values in by_sample]


def rollout_groups(
    rollouts: Sequence[Rollout],
    gamma: float,
    credit: Credit = "shared",
    turn_weights: TurnWeights = "reach",
    strength: float = 1.0,
) -> Iterator[AnswerGroup]:
    """Yield every group of every rollout: one per node and agent that answered there.

    Args:
        rollouts: The rollouts.
        gamma: Discount factor per turn, in [0, 1].
        credit: Share of a joint action's return that an agent receives.
        turn_weights: `reach` weights nodes by the probability of reaching them, and the future in a
            chain by the joint actions that it stands for; `nodes` weights all nodes equally.
        strength: beta of the credit `alignment`.
    """
    baselines: dict[AgentID, list[dict[int, float]]] = {}
    if turn_weights == "reach":
        agents = dict.fromkeys(agent for rollout in rollouts for agent in rollout.agents)
        baselines = {agent: chain_baselines(rollouts, agent, gamma) for agent in agents}
    for number, rollout in enumerate(rollouts):

        def baseline_of(node: Node, agent: AgentID, number: int = number) -> float | None:
            return baselines[agent][number].get(node.turn, 0.0) if baselines else None

        terms: dict[tuple[int, AgentID], list[float]] = {}
        if credit == "alignment":
            values = functools.partial(_joint_returns_of, gamma=gamma, baseline_of=baseline_of)
            terms = alignment_terms(
                rollout.root, rollout.agents, values, gamma=gamma, beta=strength
            )
        for node, weight in weighted_nodes(rollout.root, turn_weights):
            for agent, completions in node.completions.items():
                baseline, extra = baseline_of(node, agent), terms.get((id(node), agent), ())
                returns = sample_returns(node, agent, gamma, credit, baseline, extra)
                equal_credit = returns
                if baseline is not None and any(step.child is not None for step in node.steps):
                    equal_credit = sample_returns(node, agent, gamma, credit)
                yield AnswerGroup(
                    agent,
                    node.turn,
                    tuple(completions),
                    tuple(returns),
                    weight,
                    rollout=number,
                    env_name=rollout.env_name,
                    is_flat=min(equal_credit) == max(equal_credit),
                )


def _joint_returns_of(
    node: Node,
    agent: AgentID,
    *,
    gamma: float,
    baseline_of: Callable[[Node, AgentID], float | None],
) -> list[float]:
    return joint_returns(node, agent, gamma, baseline_of(node, agent))


def chain_baselines(
    rollouts: Sequence[Rollout], agent: AgentID, gamma: float
) -> list[dict[int, float]]:
    """Return the mean future in the other chains, by turn, for each rollout."""
    return other_rollouts_means(rollouts, lambda _, node: _child_returns(node, agent, gamma, 0.0))


def _child_returns(
    node: Node, agent: AgentID, gamma: float, baseline: float | None
) -> dict[int, float]:
    """Return the mean return of each child, by the index of its joint action.

    The mean over joint actions is unbiased with any baseline, so the baseline of children is 0.
    """
    inner = None if baseline is None else 0.0
    return {
        number: mean(joint_returns(step.child, agent, gamma, inner))
        for number, step in enumerate(node.steps)
        if step.child is not None
    }
