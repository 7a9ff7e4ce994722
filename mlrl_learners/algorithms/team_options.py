"""Option groups of every learner with a team of models: its policies, and how they are computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mlrl_envs import tools_of
from mlrl_envs.errors import InvalidArgumentError
from mlrl_learners.errors import ConfigError

__all__ = ["ComputeOptions", "TeamOptions"]

TOOLS = "tools"  # the variable of chat templates


@dataclass(frozen=True)
class TeamOptions:
    """Who plays: the policy of each agent, whether it is trained, and its instructions.

    Attributes:
        share_weights: Trains all agents as one policy with one optimizer.
        policies: Name of each agent's policy; agents with the same name share a policy, agents
            that are left out have one by their own name.
        frozen: Agents that act but are not trained.
        system_prompts: System prompt of each agent; agents that are left out have none.
        chat_template_kwargs: Further variables of the chat template, such as
            `enable_thinking: false`; each must occur in the template of some agent's model.
        conversation: Whether models read their earlier turns as messages of a chat, each
            observation as the user's and each answer as the assistant's, not the observation
            alone. A later message leaves out what it repeats of the one before it.
        tools: Id of an environment whose tools the chat templates of all models describe, such as
            `mlrl/tools-v1`; empty for none. The option `tool_format: template` of the environment
            leaves them out of the observations.
        max_prompt_tokens: Longest prompt in tokens, above those of the system prompt and the chat
            template; longer prompts lose their oldest turns, then the middle of their observation;
            0 for the context length of the model minus `max_new_tokens`.
    """

    share_weights: bool = False
    policies: Mapping[str, str] = field(default_factory=dict)
    frozen: Sequence[str] = ()
    system_prompts: Mapping[str, str] = field(default_factory=dict)
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    conversation: bool = False
    tools: str = ""
    max_prompt_tokens: int = 0

    def __post_init__(self) -> None:
        """Check what can be checked without knowing the agents.

        Raises:
            ConfigError: If a value is outside its range, or two of them contradict each other.
        """
        if self.share_weights and self.policies:
            raise ConfigError("share_weights puts all agents on one policy: leave policies out")
        taken = {"messages", "add_generation_prompt", "tokenize"} & set(self.chat_template_kwargs)
        if taken:
            raise ConfigError(f"chat_template_kwargs must not set {min(taken)}, which is set here")
        if self.tools and TOOLS in self.chat_template_kwargs:
            raise ConfigError(f"chat_template_kwargs must not set {TOOLS}, as team.tools does")
        self.template_variables()  # refuses an environment without tools
        if self.max_prompt_tokens < 0:
            raise ConfigError(f"max_prompt_tokens must be at least 0, got {self.max_prompt_tokens}")

    def template_variables(self) -> dict[str, Any]:
        """Return the further variables of the chat template, with the schemas of the tools.

        Raises:
            ConfigError: If there is no environment `tools`, or it has no tools.
        """
        if not self.tools:
            return dict(self.chat_template_kwargs)
        try:
            return {**self.chat_template_kwargs, TOOLS: tools_of(self.tools)}
        except InvalidArgumentError as error:
            raise ConfigError(f"tools must name an environment with tools: {error}") from None


@dataclass(frozen=True)
class ComputeOptions:
    """How models are computed: types, device, memory and the size of batches.

    Attributes:
        dtype: Type of the weights: `"float32"`, `"bfloat16"` or `"float16"`; trained weights below
            float32 have float32 master copies.
        precision: Type of the computation: `"float32"` for that of the weights, or `"bf16"` or
            `"fp16"` for autocast. The loss is scaled if gradients pass through float16. A processor
            without bfloat16 products computes `"bf16"` in float32, with a warning.
        device: `"auto"` (a GPU if there is one), or any argument of `torch.device`.
        model_options: Further arguments of `from_pretrained`: revision, attention, quantisation.
        gradient_checkpointing: Recomputes activations in the backward pass to save memory.
        fsdp: Shards all weights over the processes, for models that do not fit on one GPU; excludes
            adapters and frozen agents.
        max_rows: Largest number of answers that are decoded in one batch, at least 1.
        micro_batch_tokens: Largest number of tokens per forward pass in training, padding included,
            at least 1.
    """

    dtype: str = "float32"
    precision: Literal["float32", "bf16", "fp16"] = "float32"
    device: str = "auto"
    model_options: Mapping[str, Any] = field(default_factory=dict)
    gradient_checkpointing: bool = False
    fsdp: bool = False
    max_rows: int = 64
    micro_batch_tokens: int = 1024

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        for name in ("max_rows", "micro_batch_tokens"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
