"""A team of agents on top of language models, and how they answer.

Every learner with `transformers` policies is built on a `Team`; only `update` tells them apart.
Who has which weights is the matter of `mlrl_learners.algorithms.weights`.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from mlrl_learners.algorithms.weights import (
    Weights,
    WeightsConfig,
    assign_policies,
    load_policy,
    policy_sources,
)
from mlrl_learners.errors import CheckpointError, ConfigError, unknown_name
from mlrl_learners.policies import (
    ChatFormat,
    ModelSource,
    OptimizerConfig,
    Policy,
    PolicyOptimizer,
    SamplingConfig,
    restore,
)
from mlrl_learners.processes.work_sharing import start, world
from mlrl_learners.types import AgentID, Completion, RolloutConfig

__all__ = ["Team", "TeamConfig", "load_policy"]


@dataclass(frozen=True)
class TeamConfig(SamplingConfig, OptimizerConfig, WeightsConfig):
    """Models, sampling and optimisation of a team.

    Attributes:
        system_prompts: For each agent, what its model is told first; agents may be left out.
        max_prompt_tokens: Longer prompts lose the middle of their observation, more than the system
            prompt and the chat template take; 0 for what the model can read.
        max_rows: Most answers that are decoded at once, at least 1.
        micro_batch_tokens: Most tokens of one forward pass in training, padding included.
    """

    system_prompts: Mapping[str, str] = field(default_factory=dict)
    max_prompt_tokens: int = 0
    max_rows: int = 64
    micro_batch_tokens: int = 1024

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        SamplingConfig.__post_init__(self)
        OptimizerConfig.__post_init__(self)
        WeightsConfig.__post_init__(self)
        for name, low in (("max_prompt_tokens", 0), ("max_rows", 1), ("micro_batch_tokens", 1)):
            if getattr(self, name) < low:
                raise ConfigError(f"{name} must be at least {low}, got {getattr(self, name)}")

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that there is something to learn from what is played in this way.

        Raises:
            ConfigError: If there is not.
        """


class Team:
    """Agents, their policies, and one generator that all sampling draws from.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all (each policy gets its own copy or adapter), or one an agent.
        config: Models, sampling, optimisation.
        seed: Decides everything that is sampled.

    Attributes:
        shares_work: Several processes learn one team, see `mlrl_learners.processes.work_sharing`.
        policy_of: For each agent, the name of its policy.
        policies: By name.
        optimizers: By name of a policy; those that are frozen have none.
        learning: The agents that are not frozen; what others say is not trained on.
    """

    shares_work = True

    @property
    def is_sharded(self) -> bool:
        """Whether weights are in pieces, so that it takes all processes to save them."""
        return self.config.fsdp and world().size > 1

    def __init__(
        self,
        agents: Sequence[AgentID],
        model: ModelSource | Mapping[AgentID, ModelSource],
        config: TeamConfig,
        seed: int,
    ) -> None:
        start()
        self.agents = tuple(agents)
        self.config = config
        self.generator = torch.Generator().manual_seed(seed)
        self.policy_of = assign_policies(self.agents, config)
        for agent in config.system_prompts:
            if agent not in self.agents:
                raise unknown_name("agent", agent, self.agents)
        self.sources = policy_sources(self.policy_of, model)
        self.learning = tuple(agent for agent in self.agents if agent not in config.frozen)
        self.weights = Weights(config, seed)
        learnt = {self.policy_of[agent] for agent in self.learning}
        self.policies = {
            name: self.weights.trained(name, source)
            if name in learnt
            else self.weights.frozen(source)
            for name, source in self.sources.items()
        }
        self.optimizers = {
            name: PolicyOptimizer(policy.parameters(), config)
            for name, policy in self.policies.items()
            if name in learnt
        }
        self._formats = {agent: self._format(agent) for agent in self.agents}

    def act(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        *,
        num_samples: int = 1,
        explore: bool = True,
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Answer many joint observations: one batch a model, whatever agent or node asks.

        Raises:
            UnknownNameError: If an observation is for an agent that is not of this team.
        """
        asked: dict[int, list[tuple[int, AgentID]]] = {}  # by the weights that answer
        for node, observation in enumerate(observations):
            for agent in observation:
                asked.setdefault(id(self._policy(agent).model), []).append((node, agent))
        answers: list[dict[AgentID, list[Completion]]] = [{} for _ in observations]
        for policy in self.policies.values():
            places = asked.pop(id(policy.model), [])
            if not places:
                continue
            completions = policy.complete(
                [self._formats[agent].encode(observations[node][agent]) for node, agent in places],
                num_samples,
                self.config,
                generator=self.generator if explore else None,
                max_rows=self.config.max_rows,
                adapters=[self._policy(agent).adapter for _, agent in places],
            )
            for (node, agent), group in zip(places, completions, strict=True):
                answers[node][agent] = group
        return [
            {agent: given[agent] for agent in observation}
            for observation, given in zip(observations, answers, strict=True)
        ]

    def prompt_ids(self, agent: AgentID, observation: str) -> list[int]:
        """Return the token ids that an agent's model reads for an observation.

        Raises:
            UnknownNameError: If the agent is not of this team.
        """
        self._policy(agent)
        return self._formats[agent].encode(observation)

    @contextlib.contextmanager
    def sampling_seed(self, seed: int) -> Iterator[None]:
        """Sample from `seed` inside the block, then go on as if nothing had happened."""
        state = self.generator.get_state()
        self.generator.manual_seed(seed)
        try:
            yield
        finally:
            self.generator.set_state(state)

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that there is something to learn from what is played in this way.

        Raises:
            ConfigError: If there is not.
        """
        self.config.check_rollout(rollout)

    def save(self, path: Path) -> None:
        """Write what was learnt, optimizers and the generator into the folder `path`.

        The folder of a policy also loads with `transformers`, that of an adapter with `peft`; of
        frozen weights it only says which they are.
        """
        path.mkdir(parents=True, exist_ok=True)
        for name, policy in self.policies.items():
            policy.save(path / name)
        for name, optimizer in self.optimizers.items():
            torch.save(optimizer.state_dict(), path / name / "optimizer.pt")
        torch.save(self.generator.get_state(), path / "generator.pt")
        team = {"agents": list(self.agents), "policies": self.policy_of}
        (path / "team.json").write_text(json.dumps(team, indent=2) + "\n")

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If it is missing, damaged, or of another team or model.
        """
        try:
            policy_of = json.loads((path / "team.json").read_text())["policies"]
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise CheckpointError(f"{str(path)!r} holds no checkpoint of a team: {error}") from None
        if policy_of != self.policy_of:
            raise CheckpointError(
                f"{str(path)!r} is of a team {policy_of}, this one is {self.policy_of}"
            )
        for name, policy in self.policies.items():
            policy.load(path / name)
        for name, optimizer in self.optimizers.items():
            restore(path / name / "optimizer.pt", optimizer.load_state_dict)
        restore(path / "generator.pt", self.generator.set_state)

    def plan_updates(self, num_updates: int) -> None:
        """Take note of how many updates the whole run has; learning rates fall over all of it.

        Args:
            num_updates: Those before a resume included.

        Raises:
            ConfigError: If a schedule would have steps at rate 0, or end within its warm-up.
        """
        for optimizer in self._every_optimizer():
            optimizer.plan_updates(num_updates)

    def begin_update(self) -> None:
        """Forget gradients that a failed update left, and move all schedules on by an update.

        Raises:
            ConfigError: If the length of a falling schedule is not known, or it is over.
        """
        for optimizer in self._every_optimizer():
            optimizer.begin_update()

    def _every_optimizer(self) -> Iterator[PolicyOptimizer]:
        yield from self.optimizers.values()

    def _policy(self, agent: AgentID) -> Policy:
        if agent not in self.policy_of:
            raise unknown_name("agent", agent, self.agents)
        return self.policies[self.policy_of[agent]]

    def _format(self, agent: AgentID) -> ChatFormat:
        policy = self._policy(agent)
        limit: int | None = self.config.max_prompt_tokens or None
        if policy.max_positions is not None:
            readable = policy.max_positions - self.config.max_new_tokens
            if readable < 1:
                raise ConfigError(
                    f"max_new_tokens must leave room for a prompt in the {policy.max_positions} "
                    f"tokens that the model of {agent!r} reads, got {self.config.max_new_tokens}"
                )
            limit = min(limit or readable, readable)
        chat = ChatFormat(policy.tokenizer, self.config.system_prompts.get(agent), limit)
        if limit is not None and limit <= chat.num_fixed_tokens:
            raise ConfigError(self._why_no_room(agent, limit, chat.num_fixed_tokens))
        return chat

    def _why_no_room(self, agent: AgentID, limit: int, needed: int) -> str:
        """Say which option leaves a prompt without a token of its observation."""
        whose = f"the system prompt and chat template of {agent!r}"
        if limit == self.config.max_prompt_tokens:
            return f"max_prompt_tokens must be above {needed}, the tokens of {whose}, got {limit}"
        return (
            f"max_new_tokens must leave more than {needed} tokens of what the model reads, those "
            f"of {whose}, got {self.config.max_new_tokens}, which leaves {limit}"
        )
