"""Prompts of critics, and the values that they return.

Everything an agent read is asked about, and what would have been read where a line was cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mlrl_learners.policies import ChatFormat
from mlrl_learners.types import AgentID, Completion, Rollout

__all__ = ["CENTRAL", "CriticInputs", "CriticKind", "Key", "Prompt", "Reading", "joint_observation"]

CriticKind = Literal["separate", "value_head", "central"]
CENTRAL = "central"

Key = tuple[str, str]
"""Who reads (an agent, or `CENTRAL`), and which text."""
Prompt = tuple[int, ...]


def joint_observation(observations: Mapping[AgentID, str], agents: Sequence[AgentID]) -> str:
    """Return what all agents read as one text, in the order of `agents`."""
    present = [agent for agent in agents if agent in observations]
    return "\n\n".join(f"[{agent}]\n{observations[agent]}" for agent in present)


@dataclass(frozen=True, slots=True)
class CriticInputs:
    """How critics come to their prompts.

    Attributes:
        agents: Every agent, in order.
        kind: Which critics there are.
        formats: For each reader (an agent, or `CENTRAL`), how text becomes a prompt.
    """

    agents: tuple[AgentID, ...]
    kind: CriticKind
    formats: Mapping[str, ChatFormat]

    def key(self, agent: AgentID, observations: Mapping[AgentID, str]) -> Key:
        """Return who reads for an agent, and which text."""
        if self.kind == "central":
            return CENTRAL, joint_observation(observations, self.agents)
        return agent, observations[agent]

    def column(self, agent: AgentID) -> int:
        """Return which of its critic's values is the agent's."""
        return self.agents.index(agent) if self.kind == "central" else 0

    def prompts(self, rollouts: Sequence[Rollout], *, bootstrap: bool = False) -> dict[Key, Prompt]:
        """Return the prompt of every text that a critic is asked about, each once.

        Args:
            rollouts: What was played.
            bootstrap: Include what would have been read behind artificial turn limits.
        """
        prompts: dict[Key, Prompt] = {}
        for key, completions in self._questions(rollouts, bootstrap=bootstrap):
            if key not in prompts and key[0] in self.formats:
                prompts[key] = self._prompt(key, completions)
        return prompts

    def _questions(
        self, rollouts: Sequence[Rollout], *, bootstrap: bool
    ) -> Iterator[tuple[Key, Sequence[Completion]]]:
        for rollout in rollouts:
            behind_limit = bootstrap and rollout.artificial_limit
            for node in rollout.root.walk():
                for agent, completions in node.completions.items():
                    yield self.key(agent, node.observations), completions
                for step in node.steps:
                    if step.truncated and not behind_limit:
                        # Texts read after an episode's end are not asked about: critics are not
                        # trained on them.
                        continue
                    for agent in step.next_observations:
                        yield self.key(agent, step.next_observations), ()

    def _prompt(self, key: Key, completions: Sequence[Completion]) -> Prompt:
        reader, text = key
        if self.kind == "value_head" and completions:
            return completions[0].prompt_ids  # what was sampled from is what is trained
        return tuple(self.formats[reader].encode(text))


@dataclass(frozen=True, slots=True)
class Reading:
    """What the critics of a team said of some rollouts, and the prompts they read."""

    inputs: CriticInputs
    prompts: Mapping[Key, Prompt]
    values: Mapping[Key, Sequence[float]]

    def value(self, agent: AgentID, observations: Mapping[AgentID, str]) -> float:
        """Return what the agent could expect where the agents read these observations."""
        return self.values[self.inputs.key(agent, observations)][self.inputs.column(agent)]

    def prompt(self, agent: AgentID, observations: Mapping[AgentID, str]) -> Prompt:
        """Return what the agent's critic read there."""
        return self.prompts[self.inputs.key(agent, observations)]
