"""Sampled answers with token ids and log-probabilities, over OpenAI's completions protocol.

A prompt is sent as token ids (`POST /completions`), and one request asks for all of its answers
(`n`). Used of the answer, where `choice` is one of its `choices`:

- `choice.token_ids` (vLLM, request field `return_token_ids`), or else `choice.logprobs.tokens` in
  the form `token_id:42` (vLLM, `return_tokens_as_token_ids`)
- `choice.logprobs.token_logprobs` (OpenAI, `logprobs`): natural logarithms
- `choice.prompt_token_ids` (vLLM): compared with the prompt, if given
- `metadata.weight_version` (SGLang) or `weight_version`: version of the weights, if given

These fields are documented by their servers; servers without them are refused. vLLM reports
log-probabilities before temperature unless it runs with `--logprobs-mode processed_logprobs`.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mlrl_envs.errors import EndpointError
from mlrl_envs.models.chat import ChatSettings
from mlrl_envs.models.client import NOT_OPENAI, as_list, failure, open_client, send

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["TokenReply", "TokenRequest", "sample_tokens"]

ID_PREFIX = "token_id:"
NEEDED = "serve the model with vLLM 0.10.2 or later, or another server that has return_token_ids"


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A prompt and the number of its answers.

    Attributes:
        prompt_ids: Token ids of the prompt, at least one.
        num_samples: Number of answers, at least 1.
        seed: Sampling seed of the answers; None leaves it to the server.
        stop_token_ids: Ids that end an answer.
        stop: Texts that end an answer.
    """

    prompt_ids: Sequence[int]
    num_samples: int = 1
    seed: int | None = None
    stop_token_ids: Sequence[int] = ()
    stop: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TokenReply:
    """One sampled answer.

    Attributes:
        token_ids: Sampled token ids, at least one, with the token that ended the answer.
        logprobs: Natural log-probability of each token under the server's distribution, at most 0.
        text: The answer as the server decoded it.
        finish_reason: `"stop"` if the model ended the answer, `"length"` if it was truncated.
        weight_version: Version of the server's weights; None if it gives none that is a number.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: Literal["stop", "length"] = "stop"
    weight_version: float | None = None


def sample_tokens(
    endpoint: ChatSettings, requests: Sequence[TokenRequest]
) -> list[list[TokenReply] | EndpointError]:
    """Return the answers to each prompt, in order, or the error of its request.

    Args:
        endpoint: The server, the model and the sampling options.
        requests: Prompts, sent in parallel.

    Raises:
        EndpointError: If the client library is not installed.
    """
    with (
        open_client(endpoint) as client,
        ThreadPoolExecutor(min(endpoint.max_concurrency, max(1, len(requests)))) as pool,
    ):
        return list(pool.map(lambda request: _try(client, endpoint, request), requests))


def _try(
    client: "OpenAI", endpoint: ChatSettings, request: TokenRequest
) -> list[TokenReply] | EndpointError:
    try:
        return _ask(client, endpoint, request)
    except EndpointError as error:
        return error


def _ask(client: "OpenAI", endpoint: ChatSettings, request: TokenRequest) -> list[TokenReply]:
    options: dict[str, Any] = {
        # A server may take other defaults from the model's generation configuration.
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        "stop_token_ids": list(request.stop_token_ids),
    }
    fields: dict[str, Any] = {
        "model": endpoint.model,
        "prompt": list(request.prompt_ids),
        "n": request.num_samples,
        "max_tokens": endpoint.max_tokens,
        "temperature": endpoint.temperature,
        "top_p": 1.0 if endpoint.top_p is None else endpoint.top_p,
        "logprobs": 1,
    }
    if request.seed is not None:
        fields["seed"] = request.seed
    if request.stop:
        fields["stop"] = list(request.stop)
    return send(
        endpoint,
        lambda: _replies(
            endpoint, request, client.completions.create(**fields, extra_body=options)
        ),
    )


def _replies(endpoint: ChatSettings, request: TokenRequest, found: object) -> list[TokenReply]:
    choices = as_list(getattr(found, "choices", None))
    if len(choices) != request.num_samples:
        cause = f"{len(choices)} choices in its answer, for n {request.num_samples}"
        raise failure(endpoint, cause, NOT_OPENAI)
    version = _version(found)
    return [_reply(endpoint, request, choice, version) for choice in choices]


def _reply(
    endpoint: ChatSettings, request: TokenRequest, choice: object, version: float | None
) -> TokenReply:
    logprobs = getattr(choice, "logprobs", None)
    token_ids = _token_ids(choice, logprobs)
    values = as_list(getattr(logprobs, "token_logprobs", None))
    if not token_ids:
        raise failure(endpoint, "no token ids in its answer", NEEDED)
    if len(values) != len(token_ids) or not all(_is_logprob(value) for value in values):
        cause = f"{len(values)} log-probabilities for {len(token_ids)} tokens in its answer"
        raise failure(endpoint, cause, NEEDED)
    read = as_list(getattr(choice, "prompt_token_ids", None))
    if read and read != list(request.prompt_ids):
        cause = f"it read {len(read)} prompt tokens instead of the {len(request.prompt_ids)} sent"
        raise failure(endpoint, cause, "serve the model that is trained, with its tokenizer")
    return TokenReply(
        token_ids=tuple(token_ids),
        logprobs=tuple(min(0.0, float(value)) for value in values),
        text=str(getattr(choice, "text", None) or ""),
        finish_reason="length" if getattr(choice, "finish_reason", None) == "length" else "stop",
        weight_version=version,
    )


def _token_ids(choice: object, logprobs: object) -> list[int]:
    """Return the sampled ids; empty if the server gave none."""
    ids = as_list(getattr(choice, "token_ids", None))
    if not ids:
        names = [str(each) for each in as_list(getattr(logprobs, "tokens", None))]
        if not all(name.startswith(ID_PREFIX) for name in names):
            return []
        ids = [name.removeprefix(ID_PREFIX) for name in names]
    try:
        return [int(number) for number in ids]
    except (TypeError, ValueError, OverflowError):
        return []


def _is_logprob(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and -sys.float_info.max <= value < 1e-3  # type: ignore[operator]


def _version(found: object) -> float | None:
    metadata = getattr(found, "metadata", None)
    value = metadata.get("weight_version") if isinstance(metadata, Mapping) else None
    if value is None:
        value = getattr(found, "weight_version", None)
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
