"""Checks of the arguments of `reset` and `step`; each error names the value."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlrl_envs.errors import InvalidActionError, InvalidArgumentError, unknown_name
from mlrl_envs.types import AgentID

__all__ = [
    "check_joint_action",
    "check_list",
    "checked_actions",
    "checked_index",
    "checked_options",
    "checked_seed",
    "not_a_text",
]


def checked_seed(seed: object) -> int | None:
    """Return a seed: None, or an int of at least 0."""
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidArgumentError(f"seed must be an int of at least 0, got {seed!r}")
    return int(seed)


def checked_options(options: object) -> dict[str, Any] | None:
    """Return a copy of the options of a reset: None, or a mapping."""
    if options is None:
        return None
    if not isinstance(options, Mapping):
        raise InvalidArgumentError(f"options must be a mapping or None, got {options!r}")
    return dict(options)


def check_list(name: str, values: object) -> None:
    """Check that values are a list, or another sequence that is no text."""
    if not hasattr(values, "__getitem__") or isinstance(values, str | bytes | Mapping):
        kind = type(values).__name__
        raise InvalidArgumentError(
            f"{name} must be a list with one entry for each environment, got {kind}"
        )


def checked_index(index: object, num_tasks: int) -> int:
    """Return the row number of a task, in `0 .. num_tasks - 1`."""
    if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
        raise InvalidArgumentError(f"task_index must be an int, got {index!r}")
    if not 0 <= index < num_tasks:
        raise InvalidArgumentError(f"task_index must be in 0..{num_tasks - 1}, got {index}")
    return int(index)


def check_joint_action(actions: object) -> None:
    """Check that a joint action is a mapping."""
    if not isinstance(actions, Mapping):
        raise InvalidActionError(f"actions must map agents to texts, got {type(actions).__name__}")


def checked_actions(
    actions: Mapping[AgentID, str], acting: Sequence[AgentID], agents: Sequence[AgentID]
) -> dict[AgentID, str]:
    """Return the actions of the agents that act as plain `str` values, in the order of `acting`.

    Args:
        actions: The joint action; actions of agents that do not act are ignored.
        acting: The agents that act.
        agents: Every agent of the environment.
    """
    check_joint_action(actions)
    known = set(agents)
    for agent in actions:
        if agent not in known:
            raise InvalidActionError(str(unknown_name("agent", agent, agents)))
    for agent in acting:
        if agent not in actions:
            raise InvalidActionError(f"no action for agent {agent!r}; need {', '.join(acting)}")
        if not isinstance(actions[agent], str):
            raise not_a_text(agent, actions[agent])
    # AEC views pass subclasses of str, and callers any order of agents.
    return {agent: str.__str__(actions[agent]) for agent in acting}


def not_a_text(agent: AgentID, action: object) -> InvalidActionError:
    """Build the error for an action that is not a `str`."""
    kind = type(action).__name__
    return InvalidActionError(f"the action of {agent!r} must be a str, got {kind}")
