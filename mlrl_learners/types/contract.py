"""Rules for what actors, learners and environments return, each with an error that names it."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsFloat

from mlrl_envs.errors import ContractError
from mlrl_learners.types.completions import Completion
from mlrl_learners.types.rollouts import AgentID

__all__ = ["check_actor", "check_answers", "check_methods", "check_metrics", "checked_float"]

CALLS: Mapping[str, tuple[object, dict[str, Any]]] = {
    "act": ([], {"num_samples": 1, "explore": True}),
    "update": ([], {}),
    "save": (Path(), {}),
    "load": (Path(), {}),
}
"""Argument and keyword arguments of each method of a learner."""
RESERVED_NAMES = frozenset(
    (
        *("iteration", "step", "seconds", "eval/return", "eval/solved_rate"),
        *("train/return", "train/return_std", "train/solved_rate", "train/turns", "train/tokens"),
        *("train/failed_episodes", "train/thrown_away"),
        *("time/rollout_seconds", "time/update_seconds", "time/tokens_per_second"),
        *("sampler/policy_age", "sampler/replaced"),
        *("sampler/rollouts_wait_seconds", "sampler/weights_wait_seconds"),
    )
)
RESERVED_PREFIXES = ("train/return/", "train/reward/", "eval/return/", "eval/reward/")
RESERVED_SUFFIX = "/tokens_per_second"  # of an agent


def check_actor(actor: object) -> None:
    """Check that an actor is an object that acts.

    Raises:
        ContractError: If it is something else, such as a class, a function or a word.
    """
    if isinstance(actor, type) or not callable(getattr(actor, "act", None)):
        raise ContractError(
            f"actor must be an object with a method act, got {actor!r}; "
            "ScriptedActor makes one of a function of an agent and its observation"
        )


def check_methods(learner: object) -> None:
    """Check that a learner has all methods, and that each takes what it is called with.

    Raises:
        ContractError: If it lacks a method, or a method takes other arguments.
    """
    for name, (argument, options) in CALLS.items():
        method = getattr(learner, name, None)
        if not callable(method):
            raise ContractError(f"{type(learner).__name__} must have a method {name}")
        try:
            # A decorator may pass more arguments than it takes: its own signature counts.
            inspect.signature(method, follow_wrapped=False).bind(argument, **options)
        except ValueError:  # a function in C that does not tell its arguments
            continue
        except TypeError as error:
            takes = ", ".join(("one argument", *(f"{each}=..." for each in options)))
            where = f"{type(learner).__name__}.{name}"
            raise ContractError(f"{where} must take {takes}: {error}") from error


def check_answers(
    answers: object,
    observations: Sequence[Mapping[AgentID, str]],
    num_samples: int,
    where: str,
) -> None:
    """Check that an actor answered all agents that it was asked, as often as it was asked.

    Tokens and log-probabilities are not checked.

    Args:
        answers: What `act` returned.
        observations: Joint observations that it was asked.
        num_samples: Number of answers to each.
        where: Name of the call, for the message.

    Raises:
        ContractError: If an answer is missing, superfluous or of another type.
    """
    if not isinstance(answers, Sequence) or len(answers) != len(observations):
        raise _breach(f"{where} must return a list of {len(observations)} mappings", answers)
    for answer, observation in zip(answers, observations, strict=True):
        if not isinstance(answer, Mapping) or answer.keys() != observation.keys():
            found = list(answer) if isinstance(answer, Mapping) else answer
            raise _breach(f"{where} must answer for exactly {', '.join(observation)}", found)
        for agent, group in answer.items():
            if not isinstance(group, Sequence) or len(group) != num_samples:
                raise _breach(f"{where} must return {num_samples} completions for {agent!r}", group)
            for each in group:
                if not isinstance(each, Completion) or not isinstance(each.text, str):
                    raise _breach(f"{where} must return Completions of text for {agent!r}", each)


def check_metrics(metrics: object, where: str) -> dict[str, float]:
    """Return the metrics of an update as floats; none has a name that the run itself writes.

    Args:
        metrics: What `update` returned.
        where: Name of the call, for the message.

    Raises:
        ContractError: If it is no mapping of names to numbers, or has a name that the run writes.
    """
    if not isinstance(metrics, Mapping):
        raise _breach(f"{where} must return a mapping", metrics)
    for name in metrics:
        if not isinstance(name, str):
            raise _breach(f"{where} must return metrics by name", name)
        if _is_reserved(name):
            raise ContractError(
                f"{where} returns the metric {name!r}, which the run itself writes; rename it"
            )
    return {
        name: checked_float(value, f"the metric {name!r} of {where}")
        for name, value in metrics.items()
    }


def checked_float(value: object, what: str) -> float:
    """Return a real number as a float, such as one of NumPy, which JSON does not know.

    Args:
        value: The number.
        what: What it is, for the message.

    Raises:
        ContractError: If it is no real number.
    """
    if isinstance(value, SupportsFloat):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):  # as of arrays
            pass
    raise _breach(f"{what} must be a number", value)


def _is_reserved(name: str) -> bool:
    return (
        name in RESERVED_NAMES
        or name.startswith(RESERVED_PREFIXES)
        or name.endswith(RESERVED_SUFFIX)
    )


def _breach(rule: str, found: object) -> ContractError:
    return ContractError(f"{rule}; got {found!r}"[:500])
