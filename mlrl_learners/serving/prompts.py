"""Tokenization of prompts, and checks against the vocabulary and context length of the model."""

from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import Policy
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
        RequestError: If the chat template rejects the messages, a token id is outside the
            vocabulary, or prompt and answer together exceed the context length.
    """
    param = "messages" if asked.is_chat else "prompt"
    prompts = [_ids(tokenizer, prompt, is_chat=asked.is_chat) for prompt in asked.prompts]
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


def _ids(tokenizer: Any, prompt: Prompt, *, is_chat: bool) -> list[int]:  # noqa: ANN401
    if isinstance(prompt, str):
        return encode_text(tokenizer, prompt)
    if not is_chat:
        return list(prompt)  # type: ignore[arg-type]
    try:
        return encode_messages(tokenizer, prompt)  # type: ignore[arg-type]
    except ConfigError as error:
        raise RequestError(str(error), param="messages") from None
