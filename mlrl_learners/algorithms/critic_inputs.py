"""Prompts of critics, and the values that critics return for them.

Critics are evaluated at every observation of a rollout at which their agent acts, and at the
observations that would have followed where a chain or an artificial turn limit stopped.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.presence import next_seen, seen
from mlrl_learners.policies import ChatFormat
from mlrl_learners.policies.critic import Critic
from mlrl_learners.types import AgentID, Completion, Rollout

__all__ = [
    "CENTRAL",
    "AnswerKey",
    "CriticInputs",
    "CriticKind",
    "Key",
    "Prompt",
    "ValueEstimates",
    "check_no_waiting",
    "critic_format",
    "joint_observation",
]

CriticKind = Literal["separate", "value_head", "central"]
CENTRAL = "central"

Key = tuple[str, str]
"""Reader (an agent, or `CENTRAL`) and the text that it reads."""
Prompt = tuple[int, ...]
AnswerKey = tuple[Key, tuple[int, ...]]
"""The prompt of a critic before an answer, and the tokens of the answer."""


def joint_observation(observations: Mapping[AgentID, str], agents: Sequence[AgentID]) -> str:
    """Return the observations of all agents in the episode as one text, in the order of `agents`.

    Args:
        observations: Observations of the agents that act or wait.
        agents: Every agent.
    """
    present = [agent for agent in agents if agent in observations]
    return "\n\n".join(f"[{agent}]\n{observations[agent]}" for agent in present)


@dataclass(frozen=True, slots=True)
class CriticInputs:
    """Mapping of observations to the prompts of a team's critics.

    Attributes:
        agents: Every agent, in order.
        kind: Kind of the critics.
        formats: Chat format of each reader (an agent, or `CENTRAL`).
    """

    agents: tuple[AgentID, ...]
    kind: CriticKind
    formats: Mapping[str, ChatFormat]

    def key(self, agent: AgentID, observations: Mapping[AgentID, str]) -> Key:
        """Return the reader and the text of an agent's critic."""
        if self.kind == "central":
            return CENTRAL, joint_observation(observations, self.agents)
        return agent, observations[agent]

    def column(self, agent: AgentID) -> int:
        """Return the index of an agent's value among the values of its critic."""
        return self.agents.index(agent) if self.kind == "central" else 0

    def prompts(self, rollouts: Sequence[Rollout], *, bootstrap: bool = False) -> dict[Key, Prompt]:
        """Return the prompt of every text that a critic is evaluated at, each once.

        Args:
            rollouts: Rollouts of the update.
            bootstrap: Include the observations behind artificial turn limits.
        """
        prompts: dict[Key, Prompt] = {}
        for key, completions in self._queries(rollouts, bootstrap=bootstrap):
            if key not in prompts and key[0] in self.formats:
                prompts[key] = self._prompt(key, completions)
        return prompts

    def answers(self, rollouts: Sequence[Rollout], keys: Collection[Key]) -> list[AnswerKey]:
        """Return every answer to what a critic reads, each once.

        Args:
            rollouts: Rollouts of the update.
            keys: What the critic reads.
        """
        found = (
            (self.key(agent, seen(node)), completion.token_ids)
            for rollout in rollouts
            for node in rollout.root.walk()
            for agent, completions in node.completions.items()
            for completion in completions
        )
        return list(dict.fromkeys(each for each in found if each[0] in keys))

    def _queries(
        self, rollouts: Sequence[Rollout], *, bootstrap: bool
    ) -> Iterator[tuple[Key, Sequence[Completion]]]:
        """Yield every key to evaluate, with the completions sampled from that observation."""
        for rollout in rollouts:
            behind_limit = bootstrap and rollout.artificial_limit
            for node in rollout.root.walk():
                for agent, completions in node.completions.items():
                    yield self.key(agent, seen(node)), completions
                for step in node.steps:
                    if step.truncated and not behind_limit:
                        # Critics are not trained on observations after the end of an episode.
                        continue
                    for agent in step.next_observations:
                        yield self.key(agent, next_seen(step)), ()

    def _prompt(self, key: Key, completions: Sequence[Completion]) -> Prompt:
        reader, text = key
        if self.kind == "value_head" and completions:
            return completions[0].prompt_ids  # the policy is trained on exactly these tokens
        return tuple(self.formats[reader].encode(text))


@dataclass(frozen=True, slots=True)
class ValueEstimates:
    """Values V(h) of a team's critics at the observations of some rollouts.

    Attributes:
        inputs: Mapping of observations to prompts.
        prompts: Prompt of each key.
        values: Values of each key, one per column of the critic.
        of_answers: Values before each token of each answer, for critics with values of tokens.
    """

    inputs: CriticInputs
    prompts: Mapping[Key, Prompt]
    values: Mapping[Key, Sequence[float]]
    of_answers: Mapping[AnswerKey, Sequence[Sequence[float]]] = field(default_factory=dict)

    def value(self, agent: AgentID, observations: Mapping[AgentID, str]) -> float:
        """Return the agent's expected return from these observations on."""
        return self.values[self.inputs.key(agent, observations)][self.inputs.column(agent)]

    def of_tokens(
        self, agent: AgentID, observations: Mapping[AgentID, str], answer: Completion
    ) -> list[float]:
        """Return the agent's expected return before each token of an answer to observations."""
        key, column = self.inputs.key(agent, observations), self.inputs.column(agent)
        return [values[column] for values in self.of_answers[key, answer.token_ids]]

    def prompt(self, agent: AgentID, observations: Mapping[AgentID, str]) -> Prompt:
        """Return the prompt that the agent's critic reads for these observations."""
        return self.prompts[self.inputs.key(agent, observations)]


def critic_format(
    critic: Critic,
    limit: int | None,
    system_prompt: str | None,
    room: int = 0,
    template_kwargs: Mapping[str, Any] | None = None,
) -> ChatFormat:
    """Return the chat format of a critic with a model of its own.

    Args:
        critic: The critic.
        limit: Longest prompt in tokens; None for the context length of the critic.
        system_prompt: System prompt of the agent, if any.
        room: Tokens of an answer that the critic reads after the prompt.
        template_kwargs: Further variables of the chat template.

    Raises:
        ConfigError: If the system prompt and the chat template leave no room for an observation.
    """
    readable = critic.trunk.max_positions
    readable = None if readable is None else readable - room
    least = min((each for each in (limit, readable) if each is not None), default=None)
    chat = ChatFormat(critic.trunk.tokenizer, system_prompt, least, template_kwargs or {})
    if least is not None and least <= chat.num_fixed_tokens:
        raise ConfigError(
            f"a critic must read more than {chat.num_fixed_tokens} tokens, those of its chat "
            f"template and system prompt, and its prompts may have {least}: raise "
            "team.max_prompt_tokens, or set a critic.model that reads longer prompts"
        )
    return chat


def check_no_waiting(rollouts: Sequence[Rollout]) -> None:
    """Check that critics are trained on whatever an agent may read at an artificial turn limit.

    Raises:
        ConfigError: If an agent waits in a rollout.
    """
    for rollout in rollouts:
        for node in rollout.root.walk():
            if node.waiting:
                raise ConfigError(
                    f"bootstrap_truncated takes agents that all act in every turn, and in turn "
                    f"{node.turn} of task {rollout.task_id!r} {', '.join(node.waiting)} waited: no "
                    "critic learns from what an agent sees while it waits; leave it out"
                )
