"""Tokenization of prompts, and checks against the vocabulary and context length of the model."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import Policy
from mlrl_learners.policies.chat import CONTENT, SpecialTokens
from mlrl_learners.policies.chat_tools import problem_with_tools
from mlrl_learners.policies.messages import encode_messages, encode_text
from mlrl_learners.serving.errors import RequestError
from mlrl_learners.serving.requests import Prompt, SampleRequest

__all__ = ["encode"]


def encode(policy: Policy, tokenizer: Any, asked: SampleRequest) -> list[list[int]]:  # noqa: ANN401
    """Return the token ids of each prompt of a request.

    Args:
        policy: The model.
        tokenizer: Its tokenizer, which no other thread may use at the same time.
        asked: The request.

    Raises:
        RequestError: If the chat template rejects the messages or has no tools, a token id is
            outside the vocabulary, or prompt and answer together exceed the context length.
    """
    param = "messages" if asked.is_chat else "prompt"
    _check_tools(tokenizer, asked.tools)
    prompts = [_ids(tokenizer, prompt, asked) for prompt in asked.prompts]
    size = int(policy.model.config.vocab_size)
    length = asked.sampling.max_new_tokens
    for ids in prompts:
        if not ids:
            raise RequestError(f"{param} is empty", param=param)
        if max(ids) >= size:
            raise RequestError(
                f"token id {max(ids)} is outside the {size} tokens of the model", param=param
            )
        if policy.max_positions is not None and len(ids) + length > policy.max_positions:
            raise RequestError(
                f"{len(ids)} tokens of the prompt and {length} of the answer exceed the "
                f"{policy.max_positions} of the model; lower max_tokens or shorten the prompt",
                param=param,
            )
    return prompts


def _check_tools(tokenizer: Any, tools: Sequence[Mapping[str, Any]]) -> None:  # noqa: ANN401
    if not tools:
        return
    if problem := problem_with_tools(tokenizer, {"tools": tools}):
        message = f"the model cannot call tools: {problem}; describe them in a message"
        raise RequestError(message, param="tools")
    # Texts of messages are tokenized apart from the template, but those of tools are inside it.
    text = json.dumps(tools, ensure_ascii=False)
    if found := [*SpecialTokens(tokenizer).find(text), *([CONTENT] if CONTENT in text else [])]:
        raise RequestError(f"tools must not have special tokens, got {found[0]!r}", param="tools")


def _ids(tokenizer: Any, prompt: Prompt, asked: SampleRequest) -> list[int]:  # noqa: ANN401
    if isinstance(prompt, str):
        return encode_text(tokenizer, prompt)
    if not asked.is_chat:
        return list(prompt)  # type: ignore[arg-type]
    try:
        return encode_messages(tokenizer, prompt, tools=asked.tools)  # type: ignore[arg-type]
    except ConfigError as error:
        raise RequestError(str(error), param="messages") from None
