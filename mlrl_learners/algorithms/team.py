"""Team of agents with language-model policies: sampling, schedules and checkpoints.

Base class of every learner with `transformers` policies; a method adds `update`. The assignment of
models to agents is in `mlrl_learners.algorithms.team_models`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from mlrl_learners.algorithms.endpoint_sampler import EndpointSampler
from mlrl_learners.algorithms.sampler_options import SamplerOptions
from mlrl_learners.algorithms.team_formats import chat_formats
from mlrl_learners.algorithms.team_models import (
    TeamModels,
    TeamModelsConfig,
    assign_policies,
    load_policy,
    policy_sources,
)
from mlrl_learners.algorithms.team_players import TeamPlayers
from mlrl_learners.engine.malloc import return_free_memory
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.policies import (
    ModelSource,
    OptimizerConfig,
    Policy,
    PolicyOptimizer,
    SamplingConfig,
    restore,
)
from mlrl_learners.processes.work_sharing import start, world
from mlrl_learners.seeding import CallSeeds
from mlrl_learners.types import AgentID, Completion, RolloutConfig

__all__ = ["Team", "TeamConfig", "load_policy"]

SERVED = -1  # key of the answers that a server samples


@dataclass(frozen=True)
class TeamConfig(TeamModelsConfig):
    """Models, sampling and optimisation of a team.

    Attributes:
        sampling: Length of answers, and the distribution of their tokens.
        sampler: Server that samples rollouts.
        optimizer: Learning rate and its schedule.
    """

    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    sampler: SamplerOptions = field(default_factory=SamplerOptions)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)

    def __post_init__(self) -> None:
        """Check combinations.

        Raises:
            ConfigError: If another option makes a value meaningless.
        """
        super().__post_init__()
        if self.sampler.endpoint and self.sampling.truncates:
            raise ConfigError(
                "sampler.endpoint takes sampling.top_p 1 and top_k 0, because servers do not say "
                f"what they truncated, got {self.sampling.top_p} and {self.sampling.top_k}"
            )

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that a method can train on rollouts collected in this way.

        Raises:
            ConfigError: If it cannot.
        """


class Team(TeamPlayers):
    """Agents, their policies, and the seeds of all sampling.

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
        sampler: Server that samples the answers of trained agents; None for the policies.
    """

    config: TeamConfig
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
        self.call_seeds = CallSeeds(seed)
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
            name: PolicyOptimizer(policy.parameters(), config.optimizer, policy.new_loss_scale())
            for name, policy in self.policies.items()
            if name in learnt
        }
        self._formats = chat_formats(
            {agent: self._policy(agent) for agent in self.agents}, config.team, config.sampling
        )
        trained = {agent: self._policy(agent) for agent in self.learning}
        self.sampler = EndpointSampler.of(config.sampler, config.sampling, trained)

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
            EndpointError: If a request to the sampler fails.
        """
        served = self.sampler.models if self.sampler is not None and explore else {}
        asked: dict[int, list[tuple[int, AgentID]]] = {}  # by id of the model
        every = [(node, agent) for node, seen in enumerate(observations) for agent in seen]
        for node, agent in every:
            key = SERVED if agent in served else id(self._policy(agent).model)
            asked.setdefault(key, []).append((node, agent))
        seed_of = dict(zip(every, self.call_seeds.next(len(every)), strict=True)) if explore else {}
        answers: list[dict[AgentID, list[Completion]]] = [{} for _ in observations]
        for policy in self.policies.values():
            places = asked.pop(id(policy.model), [])
            if not places:
                continue
            completions = policy.complete(
                [self._formats[agent].encode(observations[node][agent]) for node, agent in places],
                num_samples,
                self.config.sampling,
                seeds=[seed_of[place] for place in places] if explore else None,
                max_rows=self.config.compute.max_rows,
                min_batches=self.min_batches,
                adapters=[self._policy(agent).adapter for _, agent in places],
            )
            for (node, agent), group in zip(places, completions, strict=True):
                answers[node][agent] = group
        places = asked.pop(SERVED, [])
        for (node, agent), group in zip(
            places, self._ask_sampler(observations, places, num_samples, seed_of), strict=True
        ):
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

    def sampler_metrics(self) -> dict[str, float]:
        """Return the metrics of the sampler since the last call."""
        return {} if self.sampler is None else self.sampler.take_metrics()

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that this learner can train on rollouts collected in this way.

        Raises:
            ConfigError: If it cannot.
        """
        self.config.check_rollout(rollout)

    def save(self, path: Path) -> None:
        """Write weights, optimizer states and the state of random draws into the folder `path`.

        The folder of a policy also loads with `transformers`, that of an adapter with `peft`. A
        frozen policy is stored as a reference to its source.
        """
        self.save_weights(path)
        for name, optimizer in self.optimizers.items():
            torch.save(optimizer.state_dict(), path / name / "optimizer.pt")
        state = {"generator": self.generator.get_state(), **asdict(self.call_seeds)}
        torch.save(state, path / "generator.pt")

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged, or does not fit this team.
        """
        self.load_weights(path)
        for name, optimizer in self.optimizers.items():
            restore(path / name / "optimizer.pt", optimizer.load_state_dict)
        restore(path / "generator.pt", self._load_draws)
        if self.sampler is not None:
            self.sampler.expire()

    def trained_by(self, name: str) -> set[AgentID]:
        """Return the agents whose answers train a policy."""
        return {agent for agent in self.learning if self.policy_of[agent] == name}

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

        Free memory, most of it of the last update and of sampling, is returned to the system.

        Raises:
            ConfigError: If the length of a decaying schedule is unknown, or the schedule has ended.
        """
        for optimizer in self._every_optimizer():
            optimizer.begin_update()
        if self.sampler is not None:
            self.sampler.expire()
        return_free_memory()

    def _every_optimizer(self) -> Iterator[PolicyOptimizer]:
        yield from self.optimizers.values()

    def _ask_sampler(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        places: Sequence[tuple[int, AgentID]],
        num_samples: int,
        seed_of: Mapping[tuple[int, AgentID], int],
    ) -> list[list[Completion]]:
        if self.sampler is None or not places:
            return []
        agents = [agent for _, agent in places]
        prompts = [self._formats[agent].encode(observations[node][agent]) for node, agent in places]
        policies = [self._policy(agent) for agent in agents]
        seeds = [seed_of[place] for place in places]
        return self.sampler.complete(agents, policies, prompts, num_samples, seeds)

    def _load_draws(self, state: Mapping[str, Any] | torch.Tensor) -> None:
        """Restore random draws; checkpoints of earlier versions have the generator alone."""
        if isinstance(state, torch.Tensor):
            state = {"generator": state, "seed": self.call_seeds.seed, "calls": 0}
        self.generator.set_state(state["generator"])
        self.call_seeds = CallSeeds(state["seed"], state["calls"])

    def _policy(self, agent: AgentID) -> Policy:
        if agent not in self.policy_of:
            raise unknown_name("agent", agent, self.agents)
        return self.policies[self.policy_of[agent]]
