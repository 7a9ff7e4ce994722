"""Bandit over scripted replies, a learner without torch."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mlrl_learners.types import AgentID, Completion, Rollout

REPLIES = ("left", "right", "straight on", "I do not know")
EPSILON = 0.3  # probability of a random reply while exploring
Observation = Mapping[AgentID, str]


class MyLearner:
    """Bandit with the mean reward of every reply, for each agent and observation."""

    def __init__(
        self, agents: Sequence[AgentID], seed: int = 0, replies: Sequence[str] = REPLIES
    ) -> None:
        self.agents, self.replies = tuple(agents), tuple(replies)
        self.random = np.random.default_rng(seed)
        self.arms: dict[str, list[float]] = {}  # mean reward and number of trials

    def act(
        self, observations: Sequence[Observation], *, num_samples: int = 1, explore: bool = True
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Return `num_samples` replies per agent for each joint observation."""
        return [
            {a: [self._reply(a, t, explore) for _ in range(num_samples)] for a, t in each.items()}
            for each in observations
        ]

    def update(self, rollouts: Sequence[Rollout]) -> Mapping[str, float]:
        """Update the mean reward of each reply."""
        steps = [(n, s) for r in rollouts for n in r.root.walk() for s in n.steps]
        for node, step in steps:
            for agent, sample in step.samples.items():
                said = node.completions[agent][sample].text
                arm = self._arm(agent, node.observations[agent], said)
                arm[1] += 1
                arm[0] += (step.rewards[agent] - arm[0]) / arm[1]
        return {"bandit/arms": float(len(self.arms))}

    def save(self, path: Path) -> None:
        """Write the mean rewards and the state of the random generator."""
        (path / "arms.json").write_text(json.dumps([self.arms, self.random.bit_generator.state]))

    def load(self, path: Path) -> None:
        """Read the state that `save` wrote."""
        self.arms, self.random.bit_generator.state = json.loads((path / "arms.json").read_text())

    def _arm(self, agent: AgentID, text: str, reply: str) -> list[float]:
        return self.arms.setdefault(json.dumps([agent, text, reply]), [0.0, 0])

    def _reply(self, agent: AgentID, text: str, explore: bool) -> Completion:
        if explore and self.random.random() < EPSILON:
            return Completion(self.replies[self.random.integers(len(self.replies))])
        return Completion(max(self.replies, key=lambda reply: self._arm(agent, text, reply)[0]))
