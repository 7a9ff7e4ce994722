"""Models of a team: assignment of agents to policies, loading, and sharing of weights.

- an agent has a policy of its own unless `share_weights` or `policies` assigns several to one
- with `lora.rank`, a policy is an adapter; adapters on one source share its frozen weights
- policies whose agents are all frozen share one copy per source
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlrl_learners.algorithms.team_options import ComputeOptions, TeamOptions
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.policies import AdapterConfig, ModelSource, Policy, load_model
from mlrl_learners.processes.work_sharing import world
from mlrl_learners.types import AgentID

__all__ = [
    "TeamModels",
    "TeamModelsConfig",
    "assign_policies",
    "load_policy",
    "policy_sources",
    "reference_policies",
]

SHARED = "shared"
POLICY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# Files and folders that checkpoints contain beside the folders of policies.
TAKEN = (
    *("baselines.pt", "critics", "generator.pt", "marlhf.json", "offline.json"),
    *("reward_model", "team.json"),
)


@dataclass(frozen=True)
class TeamModelsConfig:
    """Loading and sharing of a team's models.

    Attributes:
        team: Policies of the agents.
        lora: Adapters.
        compute: Types, device and memory.
    """

    team: TeamOptions = field(default_factory=TeamOptions)
    lora: AdapterConfig = field(default_factory=AdapterConfig)
    compute: ComputeOptions = field(default_factory=ComputeOptions)

    def __post_init__(self) -> None:
        """Check combinations.

        Raises:
            ConfigError: If two values contradict each other.
        """
        if self.compute.fsdp and (self.lora.rank or self.team.frozen):
            raise ConfigError(
                "compute.fsdp cuts up models that are trained as a whole, got "
                f"lora.rank {self.lora.rank} and team.frozen {list(self.team.frozen)}"
            )


def assign_policies(agents: Sequence[AgentID], team: TeamOptions) -> dict[AgentID, str]:
    """Return the name of each agent's policy.

    Raises:
        UnknownNameError: If the configuration names an unknown agent.
        ConfigError: If there is no agent, two have one name, every agent is frozen, or the name of
            a policy is not a valid folder name.
    """
    if not agents:
        raise ConfigError("agents must name at least one agent, got none")
    if len(set(agents)) < len(agents):
        raise ConfigError(f"agents must have different names, got {', '.join(agents)}")
    for agent in (*team.policies, *team.frozen):
        if agent not in agents:
            raise unknown_name("agent", agent, agents)
    if set(agents) <= set(team.frozen):
        raise ConfigError(f"team.frozen names every agent, {', '.join(agents)}: nobody learns")
    if team.share_weights:
        return dict.fromkeys(agents, SHARED)
    policy_of = {agent: team.policies.get(agent, agent) for agent in agents}
    for agent, name in policy_of.items():
        if not POLICY_NAME.fullmatch(name) or name in TAKEN:
            raise ConfigError(
                f"the name of a policy is letters, digits, '_', '-' and '.', and none of "
                f"{', '.join(TAKEN)}, got {name!r} for agent {agent!r}; team.policies can give it "
                "another"
            )
    return policy_of


def policy_sources(
    policy_of: Mapping[AgentID, str], model: ModelSource | Mapping[AgentID, ModelSource]
) -> dict[str, ModelSource]:
    """Return the model that each policy starts from.

    Args:
        policy_of: Name of each agent's policy.
        model: One model for all agents, or one per agent.

    Raises:
        UnknownNameError: If a model is for an unknown agent.
        ConfigError: If an agent has no model, or agents of one policy have different ones.
    """
    if not isinstance(model, Mapping):
        return dict.fromkeys(policy_of.values(), model)
    for agent in model:
        if agent not in policy_of:
            raise unknown_name("agent", agent, policy_of)
    missing = [agent for agent in policy_of if agent not in model]
    if missing:
        raise ConfigError(f"model names none for the agents {missing}")
    sources: dict[str, ModelSource] = {}
    for agent, name in policy_of.items():
        source = sources.setdefault(name, model[agent])
        if _identity(source) != _identity(model[agent]):
            raise ConfigError(
                f"agents that share the policy {name!r} need one model, got "
                f"{describe_source(source)!r} and {describe_source(model[agent])!r}"
            )
    return sources


class TeamModels:
    """Models of a team in memory, with one base model per source for adapters and frozen agents.

    Args:
        config: Loading options, and adapters.
        seed: Seed of the initial weights of adapters.
    """

    def __init__(self, config: TeamModelsConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self._bases: dict[object, Policy] = {}

    def trained(self, name: str, source: ModelSource) -> Policy:
        """Return a new policy to train: a model of its own, or an adapter with the name."""
        if not self._config.lora.rank:
            return load_policy(source, self._config.compute)
        return self.frozen(source).with_adapter(name, self._seed)

    def frozen(self, source: ModelSource) -> Policy:
        """Return the frozen policy of a source; repeated calls return the same one."""
        key = _identity(source)
        if key not in self._bases:
            policy = load_policy(source, self._config.compute)
            policy.freeze(self._config.lora, describe_source(source))
            self._bases[key] = policy
        return self._bases[key]


def reference_policies(
    policies: Mapping[str, Policy], sources: Mapping[str, ModelSource]
) -> dict[str, Policy]:
    """Return frozen copies of starting weights, by policy; policies of equal sources share one.

    Args:
        policies: Policies that have not been trained yet.
        sources: Model that each policy starts from.
    """
    copies: dict[object, Policy] = {}
    for name, policy in policies.items():
        if _identity(sources[name]) not in copies:
            copies[_identity(sources[name])] = policy.frozen_copy()
    return {name: copies[_identity(sources[name])] for name in policies}


def load_policy(source: ModelSource, compute: ComputeOptions) -> Policy:
    """Load a model with the options of a team's configuration."""
    is_sharded = compute.fsdp and world().size > 1
    device = "cpu" if is_sharded else compute.device  # the whole model may not fit on one GPU
    policy = Policy(
        # Nothing else refers to the model, so that sharding frees its whole weights.
        *load_model(source, dtype=compute.dtype, device=device, options=compute.model_options),
        precision=compute.precision,
        gradient_checkpointing=compute.gradient_checkpointing,
    )
    if is_sharded:
        policy.shard(compute.device)
    return policy


def describe_source(source: ModelSource) -> str:
    """Return a description of a model's source for files and messages."""
    if isinstance(source, str | Path):
        return str(source)
    return f"a {type(source[0]).__name__} in memory"


def _identity(source: ModelSource) -> object:
    """Return a key that is equal for equal sources; models in memory are compared by identity."""
    return str(source) if isinstance(source, str | Path) else id(source[0])
