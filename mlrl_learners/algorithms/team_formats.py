"""Chat formats of the agents of a team: system prompts, template options, and room for a prompt."""

from collections.abc import Mapping

from mlrl_learners.algorithms.team_options import TeamOptions
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import ChatFormat, Policy, SamplingConfig
from mlrl_learners.policies.chat_tools import problem_with_tools
from mlrl_learners.types import AgentID

__all__ = ["chat_formats"]


def chat_formats(
    policies: Mapping[AgentID, Policy], team: TeamOptions, sampling: SamplingConfig
) -> dict[AgentID, ChatFormat]:
    """Return the format of the prompts of each agent.

    Args:
        policies: Policy of each agent, whose tokenizer formats.
        team: System prompts, variables of the chat template, and the limit of prompts.
        sampling: Length of answers, which follow the prompt.

    Raises:
        ConfigError: If the options leave no room for an observation, no chat template reads a
            variable, a conversation has no template, or a template has no tools.
    """
    formats = {a: _chat_format(a, policy, team, sampling) for a, policy in policies.items()}
    for name in team.chat_template_kwargs:
        if not any(chat.reads(name) for chat in formats.values()):
            raise ConfigError(
                f"team.chat_template_kwargs sets {name!r}, which no chat template of these models "
                "reads: leave it out"
            )
    return formats


def _chat_format(
    agent: AgentID, policy: Policy, team: TeamOptions, sampling: SamplingConfig
) -> ChatFormat:
    max_new_tokens = sampling.max_new_tokens
    limit: int | None = team.max_prompt_tokens or None
    if policy.max_positions is not None:
        readable = policy.max_positions - max_new_tokens
        if readable < 1:
            raise ConfigError(
                "sampling.max_new_tokens must leave room for a prompt in the "
                f"{policy.max_positions} tokens that the model of {agent!r} reads, got "
                f"{max_new_tokens}"
            )
        limit = min(limit or readable, readable)
    if team.conversation and policy.tokenizer.chat_template is None:
        raise ConfigError(
            f"team.conversation needs a chat template, which the model of {agent!r} lacks"
        )
    variables = team.template_variables()
    if team.tools and (problem := problem_with_tools(policy.tokenizer, variables)):
        raise ConfigError(f"team.tools cannot be used with the model of {agent!r}: {problem}")
    chat = ChatFormat(
        policy.tokenizer,
        team.system_prompts.get(agent),
        limit,
        variables,
        conversation=team.conversation,
    )
    if limit is None or limit > chat.num_fixed_tokens:
        return chat
    whose = f"the system prompt and chat template of {agent!r}"
    if limit == team.max_prompt_tokens:
        raise ConfigError(
            f"team.max_prompt_tokens must be above {chat.num_fixed_tokens}, the tokens of {whose}, "
            f"got {limit}"
        )
    raise ConfigError(
        f"sampling.max_new_tokens must leave more than {chat.num_fixed_tokens} tokens of what the "
        f"model reads, those of {whose}, got {max_new_tokens}, which leaves {limit}"
    )
