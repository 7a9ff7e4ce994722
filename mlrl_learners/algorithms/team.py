"""A team of agents on top of language models: who uses which weights, and how they answer.

Every learner with `transformers` policies is built on a `Team`; only `update` tells them apart.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from mlrl_learners.errors import CheckpointError, ConfigError, unknown_name
from mlrl_learners.policies import ChatFormat, ModelSource, Policy, SamplingConfig, load_model
from mlrl_learners.policies.optimizer import OptimizerConfig, PolicyOptimizer
from mlrl_learners.policies.states import restore
from mlrl_learners.types import AgentID, Completion

__all__ = ["Team", "TeamConfig", "load_policy"]

SHARED = "shared"


@dataclass(frozen=True)
class TeamConfig(SamplingConfig, OptimizerConfig):
    """Models, sampling and optimisation of a team.

    Attributes:
        share_weights: All agents are one set of weights with one optimizer.
        system_prompts: For each agent, what its model is told first; agents may be left out.
        dtype: Type of the weights: `"float32"`, `"bfloat16"` or `"float16"`.
        precision: `"bf16"` computes under autocast over the weights as they are.
        device: `"auto"` (a GPU where there is one), or what `torch.device` takes.
        model_options: More arguments for `from_pretrained`: revision, attention, quantisation.
        max_prompt_tokens: Longer prompts lose their middle; 0 for what the model can read.
        max_rows: Most answers that are decoded at once, at least 1.
        micro_batch_tokens: Most tokens of one forward pass in training, padding included.
        gradient_checkpointing: Recompute activations in the backward pass to save memory.
    """

    share_weights: bool = False
    system_prompts: Mapping[str, str] = field(default_factory=dict)
    dtype: str = "float32"
    precision: Literal["float32", "bf16"] = "float32"
    device: str = "auto"
    model_options: Mapping[str, Any] = field(default_factory=dict)
    max_prompt_tokens: int = 0
    max_rows: int = 64
    micro_batch_tokens: int = 1024
    gradient_checkpointing: bool = False

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        SamplingConfig.__post_init__(self)
        OptimizerConfig.__post_init__(self)
        for name in ("max_rows", "micro_batch_tokens"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")


class Team:
    """Agents, their policies, and one generator that all sampling draws from.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all (each agent gets its own copy unless weights are shared), or one
            an agent.
        config: Models, sampling, optimisation.
        seed: Decides everything that is sampled.
    """

    def __init__(
        self,
        agents: Sequence[AgentID],
        model: ModelSource | Mapping[AgentID, ModelSource],
        config: TeamConfig,
        seed: int,
    ) -> None:
        self.agents = tuple(agents)
        self.config = config
        self.generator = torch.Generator().manual_seed(seed)
        self.policy_of = self._assign(model)
        self.policies = {
            name: load_policy(source, config) for name, source in self._sources(model).items()
        }
        self.optimizers = {
            name: PolicyOptimizer(list(policy.model.parameters()), config)
            for name, policy in self.policies.items()
        }
        self._formats = {agent: self._format(agent) for agent in self.agents}

    def act(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        *,
        num_samples: int = 1,
        explore: bool = True,
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Answer many joint observations: one batch a policy, whatever agent or node asks.

        Raises:
            UnknownNameError: If an observation is for an agent that is not of this team.
        """
        generator = self.generator if explore else None
        answers: list[dict[AgentID, list[Completion]]] = [{} for _ in observations]
        for name, policy in self.policies.items():
            asked = [
                (node, agent)
                for node, observation in enumerate(observations)
                for agent in observation
                if self._policy_name(agent) == name
            ]
            if not asked:
                continue
            prompts = [
                self._formats[agent].encode(observations[node][agent]) for node, agent in asked
            ]
            completions = policy.complete(
                prompts,
                num_samples,
                self.config,
                generator=generator,
                max_rows=self.config.max_rows,
            )
            for (node, agent), group in zip(asked, completions, strict=True):
                answers[node][agent] = group
        return [
            {agent: given[agent] for agent in observation}
            for observation, given in zip(observations, answers, strict=True)
        ]

    @contextlib.contextmanager
    def sampling_seed(self, seed: int) -> Iterator[None]:
        """Sample from `seed` inside the block, then go on as if nothing had happened."""
        state = self.generator.get_state()
        self.generator.manual_seed(seed)
        try:
            yield
        finally:
            self.generator.set_state(state)

    def save(self, path: Path) -> None:
        """Write weights, optimizers and the generator into the folder `path`.

        Each policy's folder also loads with `transformers`.
        """
        path.mkdir(parents=True, exist_ok=True)
        for name, policy in self.policies.items():
            policy.save(path / name)
            torch.save(self.optimizers[name].state_dict(), path / name / "optimizer.pt")
        torch.save(self.generator.get_state(), path / "generator.pt")
        team = {"agents": list(self.agents), "policies": self.policy_of}
        (path / "team.json").write_text(json.dumps(team, indent=2) + "\n")

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If it is missing, damaged, or of another team or model.
        """
        try:
            team = json.loads((path / "team.json").read_text())
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{str(path)!r} holds no checkpoint of a team: {error}") from None
        if team["policies"] != self.policy_of:
            raise CheckpointError(
                f"{str(path)!r} is of a team {team['policies']}, this one is {self.policy_of}"
            )
        for name, policy in self.policies.items():
            policy.load(path / name)
            restore(path / name / "optimizer.pt", self.optimizers[name].load_state_dict)
        restore(path / "generator.pt", self.generator.set_state)

    def _assign(self, model: ModelSource | Mapping[AgentID, ModelSource]) -> dict[AgentID, str]:
        if not self.agents:
            raise ConfigError("agents must name at least one agent, got none")
        if isinstance(model, Mapping):
            for agent in model:
                if agent not in self.agents:
                    raise unknown_name("agent", agent, self.agents)
            missing = [agent for agent in self.agents if agent not in model]
            if missing:
                raise ConfigError(f"model names none for the agents {missing}")
            if self.config.share_weights:
                raise ConfigError("share_weights needs one model for all agents, got one an agent")
        for agent in self.config.system_prompts:
            if agent not in self.agents:
                raise unknown_name("agent", agent, self.agents)
        shared = self.config.share_weights
        return {agent: SHARED if shared else agent for agent in self.agents}

    def _sources(
        self, model: ModelSource | Mapping[AgentID, ModelSource]
    ) -> dict[str, ModelSource]:
        if isinstance(model, Mapping):
            return {self.policy_of[agent]: model[agent] for agent in self.agents}
        return dict.fromkeys(self.policy_of.values(), model)

    def _policy_name(self, agent: AgentID) -> str:
        if agent not in self.policy_of:
            raise unknown_name("agent", agent, self.agents)
        return self.policy_of[agent]

    def _format(self, agent: AgentID) -> ChatFormat:
        policy = self.policies[self.policy_of[agent]]
        limit: int | None = self.config.max_prompt_tokens or None
        if policy.max_positions is not None:
            readable = policy.max_positions - self.config.max_new_tokens
            limit = min(limit or readable, readable)
        return ChatFormat(policy.tokenizer, self.config.system_prompts.get(agent), limit)


def load_policy(source: ModelSource, config: TeamConfig) -> Policy:
    """Load a model as a team's configuration says."""
    model, tokenizer = load_model(
        source, dtype=config.dtype, device=config.device, options=config.model_options
    )
    return Policy(
        model,
        tokenizer,
        precision=config.precision,
        gradient_checkpointing=config.gradient_checkpointing,
    )
