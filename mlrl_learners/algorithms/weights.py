"""Who has which weights: which agents share a policy, what policies start from, and what is shared.

- an agent has a policy of its own, unless `share_weights` or `policies` puts several on one
- with `lora_rank`, a policy is an adapter; all on one source share its weights, which are frozen
- a policy whose agents are all frozen keeps its weights: one copy a source, however many agents
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.policies import AdapterConfig, ModelSource, Policy, load_model
from mlrl_learners.processes.work_sharing import world
from mlrl_learners.types import AgentID

__all__ = ["Weights", "WeightsConfig", "assign_policies", "load_policy", "policy_sources"]

SHARED = "shared"
POLICY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# What is written beside the folders of policies.
TAKEN = ("critics", "generator.pt", "marlhf.json", "offline.json", "reward_model", "team.json")


@dataclass(frozen=True)
class WeightsConfig(AdapterConfig):
    """Models of a team, and who shares them.

    Attributes:
        share_weights: All agents are one policy, with one optimizer.
        policies: For each agent, the name of its policy; those of one name share all they learn.
            Agents that are left out have one by their own name.
        frozen: Agents that play, but learn nothing.
        dtype: Type of the weights: `"float32"`, `"bfloat16"` or `"float16"`; what is trained below
            float32 has masters in it.
        precision: `"bf16"` computes under autocast over the weights as they are.
        device: `"auto"` (a GPU where there is one), or what `torch.device` takes.
        model_options: More arguments for `from_pretrained`: revision, attention, quantisation.
        gradient_checkpointing: Recompute activations in the backward pass to save memory.
        fsdp: Cut all weights up over the processes, for models that fit on no one GPU; without
            adapters and frozen agents.
    """

    share_weights: bool = False
    policies: Mapping[str, str] = field(default_factory=dict)
    frozen: Sequence[str] = ()
    dtype: str = "float32"
    precision: Literal["float32", "bf16"] = "float32"
    device: str = "auto"
    model_options: Mapping[str, Any] = field(default_factory=dict)
    gradient_checkpointing: bool = False
    fsdp: bool = False

    def __post_init__(self) -> None:
        """Check what can be checked without knowing the agents.

        Raises:
            ConfigError: If a value is outside its range, or two of them contradict each other.
        """
        super().__post_init__()
        if self.share_weights and self.policies:
            raise ConfigError("share_weights puts all agents on one policy: leave policies out")
        if self.fsdp and (self.lora_rank or self.frozen):
            raise ConfigError(
                "fsdp cuts up models that are trained as a whole, got "
                f"lora_rank {self.lora_rank} and frozen {list(self.frozen)}"
            )


def assign_policies(agents: Sequence[AgentID], config: WeightsConfig) -> dict[AgentID, str]:
    """Return the name of each agent's policy.

    Raises:
        UnknownNameError: If the configuration names an agent that is none.
        ConfigError: If there is no agent, or none that learns; or if no folder can have the name
            of a policy.
    """
    if not agents:
        raise ConfigError("agents must name at least one agent, got none")
    for agent in (*config.policies, *config.frozen):
        if agent not in agents:
            raise unknown_name("agent", agent, agents)
    if set(agents) <= set(config.frozen):
        raise ConfigError(f"frozen names every agent, {', '.join(agents)}: nobody learns")
    if config.share_weights:
        return dict.fromkeys(agents, SHARED)
    policy_of = {agent: config.policies.get(agent, agent) for agent in agents}
    for agent, name in policy_of.items():
        if not POLICY_NAME.fullmatch(name) or name in TAKEN:
            raise ConfigError(
                f"the name of a policy is letters, digits, '_', '-' and '.', and none of "
                f"{', '.join(TAKEN)}, got {name!r} for agent {agent!r}; policies can give it "
                "another"
            )
    return policy_of


def policy_sources(
    policy_of: Mapping[AgentID, str], model: ModelSource | Mapping[AgentID, ModelSource]
) -> dict[str, ModelSource]:
    """Return what each policy starts from.

    Args:
        policy_of: For each agent, its policy.
        model: One model for all, or one an agent.

    Raises:
        UnknownNameError: If a model is for an agent that is none.
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


class Weights:
    """The models of a team in memory.

    Args:
        config: How they are loaded, and whether policies are adapters.
        seed: Decides what adapters start from.
    """

    def __init__(self, config: WeightsConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self._bases: dict[object, Policy] = {}

    def trained(self, name: str, source: ModelSource) -> Policy:
        """Return a policy to be trained: a model of its own, or an adapter by the name."""
        if not self._config.lora_rank:
            return load_policy(source, self._config)
        return self.frozen(source).with_adapter(name, self._seed)

    def frozen(self, source: ModelSource) -> Policy:
        """Return a policy that stays as it is: all calls for one source have the same weights."""
        key = _identity(source)
        if key not in self._bases:
            policy = load_policy(source, self._config)
            policy.freeze(self._config, describe_source(source))
            self._bases[key] = policy
        return self._bases[key]


def load_policy(source: ModelSource, config: WeightsConfig) -> Policy:
    """Load a model as a team's configuration says."""
    in_pieces = config.fsdp and world().size > 1
    device = "cpu" if in_pieces else config.device  # the whole of it fits on no GPU
    policy = Policy(
        # Nothing else refers to the model, so that sharding frees its whole weights.
        *load_model(source, dtype=config.dtype, device=device, options=config.model_options),
        precision=config.precision,
        gradient_checkpointing=config.gradient_checkpointing,
    )
    if in_pieces:
        policy.shard(config.device)
    return policy


def describe_source(source: ModelSource) -> str:
    """Name a model's source in words that a file can hold."""
    if isinstance(source, str | Path):
        return str(source)
    return f"a {type(source[0]).__name__} in memory"


def _identity(source: ModelSource) -> object:
    """Return what equal sources have in common; models in memory are told apart by object."""
    return str(source) if isinstance(source, str | Path) else id(source[0])
