"""Training samples of actor-critic methods: an answer with its advantage and value target.

Source: generalised advantage estimation (arXiv 1506.02438, eq. 16) over turns.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from mlrl_learners.algorithms.critic_inputs import ValueEstimates
from mlrl_learners.algorithms.policy_gradient_options import CreditOptions
from mlrl_learners.algorithms.policy_update import AnswerSample
from mlrl_learners.algorithms.token_actions import TokenActions
from mlrl_learners.algorithms.value_samples import ValueSample
from mlrl_learners.functional.gae import TurnGae, chain_baselines
from mlrl_learners.functional.presence import seen
from mlrl_learners.functional.reach import weighted_nodes
from mlrl_learners.functional.returns import answer_credits, mean_by_sample
from mlrl_learners.types import AgentID, Node, Rollout

__all__ = ["TurnSample", "turn_samples"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSample(AnswerSample):
    """One answer with its advantages and value targets.

    Attributes:
        value_sample: Values at sampling time and their targets.
    """

    value_sample: ValueSample


def turn_samples(
    rollouts: Sequence[Rollout],
    estimates: ValueEstimates,
    estimators: Sequence[TurnGae],
    credit: CreditOptions,
    agents: Collection[AgentID],
    tokens: TokenActions | None = None,
) -> list[TurnSample]:
    """Return a sample of every answer of the trained agents.

    Args:
        rollouts: Rollouts with the rewards that the learner trains on.
        estimates: Values of the critics at sampling time.
        estimators: Estimator of the advantages in each rollout.
        credit: Weights of turns, and credit of agents.
        agents: The trained agents.
        tokens: Advantages of tokens, for critics with values of tokens.
    """
    baselines: dict[AgentID, list[dict[int, float]]] = {}
    waiting_baselines: dict[AgentID, list[dict[int, float]]] = {}
    if credit.turn_weights == "reach":
        baselines, waiting_baselines = (
            {a: chain_baselines(rollouts, estimators, a, waiting=waiting) for a in agents}
            for waiting in (False, True)
        )
    samples: list[TurnSample] = []
    for number, (rollout, gae) in enumerate(zip(rollouts, estimators, strict=True)):
        for node, weight in weighted_nodes(rollout.root, credit.turn_weights):
            for agent in (each for each in node.completions if each in agents):
                baseline, waiting_baseline = None, 0.0
                if credit.turn_weights == "reach":
                    baseline = baselines[agent][number].get(node.turn, 0.0)
                    waiting_baseline = waiting_baselines[agent][number].get(node.turn, 0.0)
                advantages = gae.joint_advantages(
                    node, agent, baseline, waiting_baseline=waiting_baseline
                )
                if tokens is None:
                    samples += _node_samples(node, agent, advantages, weight, estimates, credit)
                else:
                    samples += _token_samples(node, agent, advantages, weight, tokens)
    return samples


def _node_samples(
    node: Node,
    agent: AgentID,
    advantages: Sequence[float],
    weight: float,
    estimates: ValueEstimates,
    credit: CreditOptions,
) -> Iterator[TurnSample]:
    """Yield one agent's samples at a node, from the advantage of each joint action."""
    prompt = estimates.prompt(agent, seen(node))
    value = estimates.value(agent, seen(node))
    for completion, own, advantage in zip(
        node.completions[agent],
        answer_credits(node, agent, advantages, credit.kind),
        mean_by_sample(node, agent, advantages),
        strict=True,
    ):
        # The target uses the advantage itself: credit is a choice of the policy gradient only.
        target = ValueSample(agent, prompt, (value,), (value + advantage,), weight)
        yield TurnSample(agent, completion, own, weight, value_sample=target)


def _token_samples(
    node: Node, agent: AgentID, advantages: Sequence[float], weight: float, tokens: TokenActions
) -> Iterator[TurnSample]:
    """Yield one agent's samples at a node, with advantages and value targets of tokens."""
    prompt = tokens.estimates.prompt(agent, seen(node))
    here = tokens.estimates.value(agent, seen(node))
    for number, advantage in enumerate(mean_by_sample(node, agent, advantages)):
        completion = node.completions[agent][number]
        values = tokens.values(node, agent, number)
        found = tokens.advantages(node, agent, number, here + advantage)
        targets = tuple(value + each for value, each in zip(values, found, strict=True))
        yield TurnSample(
            agent,
            completion,
            advantage,
            weight,
            token_advantages=tuple(found),
            value_sample=ValueSample(
                agent, prompt, tuple(values), targets, weight, completion.token_ids
            ),
        )
