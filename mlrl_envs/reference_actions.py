"""Reference actions of any environment."""

from collections.abc import Mapping
from typing import Any

from mlrl_envs.errors import InvalidArgumentError, RefusedError
from mlrl_envs.types import AgentID

__all__ = ["reference_of"]


def reference_of(env: Any) -> Mapping[AgentID, str] | None:  # noqa: ANN401  any environment
    """Return the reference actions of the current turn.

    Returns:
        The actions; None if the environment has none, or is on a server that keeps them.

    Raises:
        InvalidArgumentError: If the reference is not a mapping.
    """
    reference = getattr(env, "reference_actions", None)
    try:
        found = reference() if callable(reference) else None
    except RefusedError:
        return None
    if found is not None and not isinstance(found, Mapping):
        raise InvalidArgumentError(f"reference_actions must map agents to texts, got {found!r}")
    return found
