"""Actors on a server: `endpoint:MODEL@URL`."""

from collections.abc import Mapping
from typing import Any

from mlrl_envs.models import as_endpoint
from mlrl_learners.actors import EndpointActor
from mlrl_learners.errors import ConfigError
from mlrl_learners.types import Actor

__all__ = ["SERVED", "served_actor", "split_served"]

SERVED = "endpoint"


def served_actor(rest: str, seed: int, options: Mapping[str, Any] | None) -> Actor:
    """Make an actor from `MODEL@URL`.

    Args:
        rest: The word after `endpoint:`.
        seed: Seed of its answers.
        options: Fields of `Endpoint`, and `conversation` and `tools` of `EndpointActor`.

    Raises:
        ConfigError: If the word is incomplete, or an option has the wrong type.
        UnknownNameError: If there is no such option, or no environment of the id `tools`.
        InvalidArgumentError: If that environment has no tools, or a value is outside its range.
    """
    model, url = split_served(rest)
    settings = {"temperature": 0.8, "top_p": 0.95, "seed": seed, **(options or {})}
    conversation, tools = settings.pop("conversation", False), settings.pop("tools", "")
    if not isinstance(conversation, bool):
        raise ConfigError(f"conversation must be true or false, got {conversation!r}")
    if not isinstance(tools, str):
        raise ConfigError(f"tools must be the id of an environment, got {tools!r}")
    endpoint = as_endpoint({**settings, "base_url": url, "model": model})
    return EndpointActor(endpoint, conversation=conversation, tools=tools)


def split_served(rest: str) -> tuple[str, str]:
    """Split `MODEL@URL`; the name of the model may contain an @.

    Raises:
        ConfigError: If one of them is missing.
    """
    model, at, url = rest.rpartition("@")
    if not (model and at and url):
        raise ConfigError(
            f"write {SERVED}:MODEL@URL, such as {SERVED}:my-model@http://host:8000/v1"
        )
    return model, url
