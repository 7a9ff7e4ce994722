"""Training samples of actor-critic methods: an answer, its advantage and its value target."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlrl_learners.algorithms.critic_inputs import Reading
from mlrl_learners.algorithms.critics import ValueSample
from mlrl_learners.engine import TokenRow
from mlrl_learners.functional.credit import credited_values
from mlrl_learners.functional.gae import TurnGae, chain_baselines
from mlrl_learners.functional.reach import weighted_nodes
from mlrl_learners.functional.returns import mean_by_sample
from mlrl_learners.types import AgentID, Completion, Node, Rollout

if TYPE_CHECKING:
    from mlrl_learners.algorithms.actor_critic import ActorCriticConfig

__all__ = ["Sample", "turn_samples"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer as it is trained on.

    Attributes:
        completion: The answer.
        advantage: What it is credited with beyond what was expected.
        judgement: What the critic expected, what it should have, and the weight of the node.
        weight: Of each of its tokens in the policy's loss.
    """

    completion: Completion
    advantage: float
    judgement: ValueSample
    weight: float = 0.0

    @property
    def row(self) -> TokenRow:
        """Prompt and completion tokens."""
        return TokenRow.sampled(self.completion)


def turn_samples(
    rollouts: Sequence[Rollout],
    reading: Reading,
    config: "ActorCriticConfig",
    agents: Collection[AgentID],
) -> list[Sample]:
    """Return a sample of every answer of the agents that learn.

    Args:
        rollouts: What was played, with the rewards that are learnt from.
        reading: What the critics said of it.
        config: How advantages are estimated, and which credit an agent is given.
        agents: Those that learn.
    """
    estimators = [_estimator(rollout, reading, config) for rollout in rollouts]
    baselines: dict[AgentID, list[dict[int, float]]] = {}
    if config.turn_weights == "reach":
        baselines = {agent: chain_baselines(rollouts, estimators, agent) for agent in agents}
    samples: list[Sample] = []
    for number, (rollout, gae) in enumerate(zip(rollouts, estimators, strict=True)):
        for node, weight in weighted_nodes(rollout.root, config.turn_weights):
            for agent in (each for each in node.completions if each in agents):
                baseline = None
                if config.turn_weights == "reach":
                    baseline = baselines[agent][number].get(node.turn, 0.0)
                joint = gae.joint_advantages(node, agent, baseline)
                samples += _samples(node, agent, joint, weight, reading, config)
    return samples


def _estimator(rollout: Rollout, reading: Reading, config: "ActorCriticConfig") -> TurnGae:
    bootstrap = config.bootstrap_truncated and rollout.artificial_limit
    return TurnGae(reading.value, config.gamma, config.gae_lambda, bootstrap)


def _samples(
    node: Node,
    agent: AgentID,
    joint: Sequence[float],
    weight: float,
    reading: Reading,
    config: "ActorCriticConfig",
) -> Iterator[Sample]:
    """Yield the samples of one agent's answers at one node, from joint advantages."""
    prompt = reading.prompt(agent, node.observations)
    value = reading.value(agent, node.observations)
    credited = credited_values(node, agent, joint, config.credit)
    for completion, credit, advantage in zip(
        node.completions[agent],
        mean_by_sample(node, agent, credited),
        mean_by_sample(node, agent, joint),
        strict=True,
    ):
        judgement = ValueSample(agent, prompt, value, value + advantage, weight)
        yield Sample(completion, credit, judgement)
