"""Address and sampling options of a chat model behind an OpenAI-compatible server.

Experts, judges and actors ask models through an `Endpoint`; prompts and the parsing of answers are
theirs. Requests are sent by `mlrl_envs.models.chat`, or by `mlrl_envs.models.tokens` where token
ids are needed.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, fields
from typing import cast
from urllib.parse import SplitResult, urlsplit

from mlrl_envs.errors import EndpointError, InvalidArgumentError, unknown_name
from mlrl_envs.models.chat import ChatReply, complete
from mlrl_envs.models.client import API_KEY_VARIABLE
from mlrl_envs.models.tokens import TokenReply, TokenRequest, sample_tokens
from mlrl_envs.types import Json, Messages

__all__ = ["Endpoint", "as_endpoint"]


@dataclass(frozen=True)
class Endpoint:
    """A chat model on a server, with its sampling options.

    Args:
        api_key: The key to send; None reads the environment variable `MLRL_API_KEY`, and without
            either a dummy key is sent. Copies and pickles keep the key. It is not a field, so that
            neither the repr nor the options stored in run directories contain it.

    Attributes:
        base_url: Address of the server; most servers need it to end in `/v1`.
        model: Name of the model on the server.
        timeout_seconds: Time limit of one request in seconds, above 0.
        max_retries: Number of retries after a temporary failure, at least 0.
        max_tokens: Maximum length of an answer in tokens, at least 1.
        temperature: Sampling temperature, at least 0; 0 means greedy decoding.
        top_p: Probability mass of nucleus sampling, in (0, 1]; None leaves it to the server.
        seed: Sampling seed, at least 0; None leaves it to the server.
        max_concurrency: Maximum number of parallel requests, at least 1.
    """

    base_url: str
    model: str
    api_key: InitVar[str | None] = None
    timeout_seconds: float = 60.0
    max_retries: int = 2
    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float | None = None
    seed: int | None = None
    max_concurrency: int = 8

    def __post_init__(self, api_key: str | None) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        _check_url(self.base_url)
        if not isinstance(self.model, str) or not self.model:
            raise InvalidArgumentError(f"model must name a model, got {self.model!r}")
        if api_key is not None and not isinstance(api_key, str):
            raise InvalidArgumentError(f"api_key must be a str, got a {type(api_key).__name__}")
        object.__setattr__(self, "api_key", api_key)  # `dataclasses.replace` reads it by name
        for name, least in (("max_retries", 0), ("max_tokens", 1), ("max_concurrency", 1)):
            _check_int(name, getattr(self, name), least)
        if self.seed is not None:
            _check_int("seed", self.seed, 0)
        _check_float("timeout_seconds", self.timeout_seconds, above=0.0)
        _check_float("temperature", self.temperature, least=0.0)
        if self.top_p is not None:
            _check_float("top_p", self.top_p, above=0.0, most=1.0)

    def chat(self, messages: Messages) -> str:
        """Return the answer to one conversation.

        Raises:
            EndpointError: See `complete`.
        """
        return self.chat_many([messages])[0]

    def chat_many(self, batch: Sequence[Messages]) -> list[str]:
        """Return the answer to each conversation, in order.

        Raises:
            EndpointError: See `complete`.
        """
        return [reply.text for reply in self.complete(batch)]

    def complete(
        self,
        batch: Sequence[Messages],
        *,
        seeds: Sequence[int] | None = None,
        tools: Sequence[Mapping[str, Json]] = (),
    ) -> list[ChatReply]:
        """Return the answer to each conversation, in order, with its token counts.

        Args:
            batch: The conversations; equal ones are asked separately.
            seeds: The sampling seed of each answer; None uses `seed` for all.
            tools: JSON schemas of the tools that the model may call, see `mlrl_envs.tools_of`.

        Raises:
            EndpointError: If the server cannot be reached, rejects a request, or sends an invalid
                answer. If one answer fails, none is returned.
        """
        if not batch:
            return []
        drawn = [self.seed] * len(batch) if seeds is None else seeds
        return complete(self, list(zip(batch, drawn, strict=True)), tools)

    def sample_tokens(
        self, requests: Sequence[TokenRequest]
    ) -> list[list[TokenReply] | EndpointError]:
        """Return the answers to each prompt of token ids, in order, or the error of its request.

        Args:
            requests: Prompts with their numbers of answers and seeds; `seed` is not used.

        Raises:
            EndpointError: If the client library is not installed.
        """
        return sample_tokens(self, requests)


def as_endpoint(value: object) -> Endpoint:
    """Return an `Endpoint`, built from a mapping if necessary.

    Args:
        value: An `Endpoint`, or a mapping with fields of `Endpoint`. A mapping must not contain
            `api_key`, because options are stored in run directories.

    Raises:
        UnknownNameError: If a key of the mapping is not a field.
        InvalidArgumentError: If `value` is neither an `Endpoint` nor a mapping, or a field is
            missing or outside its range.
    """
    if isinstance(value, Endpoint):
        return value
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(
            f"an endpoint is an Endpoint, or a mapping with base_url and model, got {value!r}"
        )
    if "api_key" in value:
        raise InvalidArgumentError(
            f"options are kept in run directories: put the key into {API_KEY_VARIABLE}, not here"
        )
    known = [each.name for each in fields(Endpoint)]
    for name in value:
        if name not in known:
            raise unknown_name("endpoint option", name, known)
    for name in ("base_url", "model"):
        if name not in value:
            raise InvalidArgumentError(f"an endpoint needs {name}, got {dict(value)!r}")
    return Endpoint(**value)


def _check_url(url: object) -> None:
    parts = _parts(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidArgumentError(
            f"base_url must be like http://127.0.0.1:8000/v1 or https://..., got {url!r}"
        )
    if parts.username or parts.password:
        raise InvalidArgumentError(f"base_url must hold no password: use {API_KEY_VARIABLE}")


def _parts(url: object) -> SplitResult | None:
    """Return the parts of a URL; None if it is none."""
    if not isinstance(url, str) or not url.isprintable():
        return None
    try:
        parts = urlsplit(url)
        return None if parts.port == 0 else parts
    except ValueError:  # brackets without an IPv6 address, or no port
        return None


def _check_int(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgumentError(f"{name} must be an int of at least {least}, got {value!r}")


def _check_float(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    number = cast("float", value)
    if not is_number or not abs(number) <= sys.float_info.max or number <= above or number < least:
        bound = f"above {above:g}" if math.isfinite(above) else f"at least {least:g}"
        raise InvalidArgumentError(f"{name} must be a number {bound}, got {value!r}")
    if number > most:
        raise InvalidArgumentError(f"{name} must be at most {most:g}, got {value!r}")
