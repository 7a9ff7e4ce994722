"""Team of agents with language-model policies: sampling, schedules and checkpoints.

Base class of every learner with `transformers` policies; a method adds `update`. The assignment of
models to agents is in `mlrl_learners.algorithms.team_models`.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from mlrl_learners.algorithms.team_models import (
    TeamModels,
    TeamModelsConfig,
    assign_policies,
    load_policy,
    policy_sources,
)
from mlrl_learners.algorithms.team_weights import TeamWeights
from mlrl_learners.errors import ConfigError, unknown_name
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
class TeamConfig(TeamModelsConfig):
    """Models, sampling and optimisation of a team.

    Attributes:
        sampling: Length of answers, and the distribution of their tokens.
        optimizer: Learning rate and its schedule.
    """

    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that a method can train on rollouts collected in this way.

        Raises:
            ConfigError: If it cannot.
        """


class Team(TeamWeights):
    """Agents, their policies, and the random generator of all sampling.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all agents (each policy gets its own copy or adapter), or one per
            agent.
        config: Models, sampling and optimisation.
        seed: Seed of everything that is sampled.

    Attributes:
        shares_work: True: several processes can train one team, see
            `mlrl_learners.processes.work_sharing`.
        policy_of: Name of each agent's policy.
        policies: Policies by name.
        optimizers: Optimizers by name of their policy; frozen policies have none.
        learning: The trained agents, which are those that are not frozen.
    """

    shares_work = True

    @property
    def is_sharded(self) -> bool:
        """Whether weights are sharded over processes, which must then all take part in `save`."""
        return self.config.compute.fsdp and world().size > 1

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
        self.policy_of = assign_policies(self.agents, config.team)
        for agent in config.team.system_prompts:
            if agent not in self.agents:
                raise unknown_name("agent", agent, self.agents)
        self.sources = policy_sources(self.policy_of, model)
        self.learning = tuple(agent for agent in self.agents if agent not in config.team.frozen)
        self.models = TeamModels(config, seed)
        learnt = {self.policy_of[agent] for agent in self.learning}
        self.policies = {
            name: self.models.trained(name, source)
            if name in learnt
            else self.models.frozen(source)
            for name, source in self.sources.items()
        }
        self.optimizers = {
            name: PolicyOptimizer(policy.parameters(), config.optimizer)
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
        """Answer many joint observations, in one batch per model over all agents and nodes.

        Raises:
            UnknownNameError: If an observation is for an agent outside this team.
        """
        asked: dict[int, list[tuple[int, AgentID]]] = {}  # by id of the model
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
                self.config.sampling,
                generator=self.generator if explore else None,
                max_rows=self.config.compute.max_rows,
                adapters=[self._policy(agent).adapter for _, agent in places],
            )
            for (node, agent), group in zip(places, completions, strict=True):
                answers[node][agent] = group
        return [
            {agent: given[agent] for agent in observation}
            for observation, given in zip(observations, answers, strict=True)
        ]

    def prompt_ids(self, agent: AgentID, observation: str) -> list[int]:
        """Return the prompt of an agent's model for an observation, as token ids.

        Raises:
            UnknownNameError: If the agent is outside this team.
        """
        self._policy(agent)
        return self._formats[agent].encode(observation)

    @contextlib.contextmanager
    def sampling_seed(self, seed: int) -> Iterator[None]:
        """Sample from `seed` inside the block, then restore the generator."""
        state = self.generator.get_state()
        self.generator.manual_seed(seed)
        try:
            yield
        finally:
            self.generator.set_state(state)

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that this learner can train on rollouts collected in this way.

        Raises:
            ConfigError: If it cannot.
        """
        self.config.check_rollout(rollout)

    def save(self, path: Path) -> None:
        """Write weights, optimizer states and the generator into the folder `path`.

        The folder of a policy also loads with `transformers`, that of an adapter with `peft`. A
        frozen policy is stored as a reference to its source.
        """
        self.save_weights(path)
        for name, optimizer in self.optimizers.items():
            torch.save(optimizer.state_dict(), path / name / "optimizer.pt")
        torch.save(self.generator.get_state(), path / "generator.pt")

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged, or does not fit this team.
        """
        self.load_weights(path)
        for name, optimizer in self.optimizers.items():
            restore(path / name / "optimizer.pt", optimizer.load_state_dict)
        restore(path / "generator.pt", self.generator.set_state)

    def plan_updates(self, num_updates: int) -> None:
        """Set the number of updates of the run, over which learning rates decay.

        Args:
            num_updates: Updates of the whole run, those before a resume included.

        Raises:
            ConfigError: If a schedule would have steps at rate 0, or end within its warm-up.
        """
        for optimizer in self._every_optimizer():
            optimizer.plan_updates(num_updates)

    def begin_update(self) -> None:
        """Clear gradients that a failed update left, and advance all schedules by one update.

        Raises:
            ConfigError: If the length of a decaying schedule is unknown, or the schedule has ended.
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
        policy, max_new_tokens = self._policy(agent), self.config.sampling.max_new_tokens
        limit: int | None = self.config.team.max_prompt_tokens or None
        if policy.max_positions is not None:
            readable = policy.max_positions - max_new_tokens
            if readable < 1:
                raise ConfigError(
                    "sampling.max_new_tokens must leave room for a prompt in the "
                    f"{policy.max_positions} tokens that the model of {agent!r} reads, got "
                    f"{max_new_tokens}"
                )
            limit = min(limit or readable, readable)
        chat = ChatFormat(policy.tokenizer, self.config.team.system_prompts.get(agent), limit)
        if limit is not None and limit <= chat.num_fixed_tokens:
            raise ConfigError(self._why_no_room(agent, limit, chat.num_fixed_tokens))
        return chat

    def _why_no_room(self, agent: AgentID, limit: int, needed: int) -> str:
        """Return the error message that names the option which leaves no room for an observation.

        Args:
            agent: Agent whose prompts are too short.
            limit: Longest prompt, in tokens.
            needed: Tokens of its system prompt and chat template.
        """
        whose = f"the system prompt and chat template of {agent!r}"
        if limit == self.config.team.max_prompt_tokens:
            return (
                f"team.max_prompt_tokens must be above {needed}, the tokens of {whose}, got {limit}"
            )
        return (
            f"sampling.max_new_tokens must leave more than {needed} tokens of what the model "
            f"reads, those of {whose}, got {self.config.sampling.max_new_tokens}, which "
            f"leaves {limit}"
        )
