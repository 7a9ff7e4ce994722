"""Batched resets and steps: environments that share a family are scored together.

An environment takes part in batches if it has the methods of `mlrl_envs.types.BatchedEnv`; others
are reset and stepped one by one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, cast, overload

from mlrl_envs.config import check_choice
from mlrl_envs.errors import InfraError, InvalidArgumentError, MlrlError
from mlrl_envs.shell.arguments import check_joint_action, check_list, checked_options
from mlrl_envs.types import AgentID, BatchedEnv, ResetResult, StepResult, TextEnv, is_batched

__all__ = ["Errors", "reset_many", "step_many"]

Errors = Literal["raise", "return"]
T = TypeVar("T")
_Pending = tuple[int, BatchedEnv, Any]


@overload
def step_many(
    envs: Sequence[TextEnv], joint_actions: Sequence[Mapping[AgentID, str]]
) -> list[StepResult]: ...


@overload
def step_many(
    envs: Sequence[TextEnv],
    joint_actions: Sequence[Mapping[AgentID, str]],
    *,
    errors: Literal["raise"],
) -> list[StepResult]: ...


@overload
def step_many(
    envs: Sequence[TextEnv],
    joint_actions: Sequence[Mapping[AgentID, str]],
    *,
    errors: Literal["return"],
) -> list[StepResult | MlrlError]: ...


def step_many(
    envs: Sequence[TextEnv],
    joint_actions: Sequence[Mapping[AgentID, str]],
    *,
    errors: Errors = "raise",
) -> list[StepResult] | list[StepResult | MlrlError]:
    """Step several environments; those that share a family and a sandbox are scored as one batch.

    An environment without a running episode takes an empty joint action and returns five empty
    dicts. With `errors="raise"`, no environment of a batch is stepped if a joint action is invalid
    or the infrastructure fails.

    Args:
        envs: PettingZoo parallel environments, each at most once.
        joint_actions: One mapping for each environment.
        errors: `"raise"` raises the first error; `"return"` returns the error of an environment in
            place of its result, and steps the others.

    Returns:
        The result of `step` of each environment, in order.

    Raises:
        InvalidArgumentError: If an argument is no list, the lengths differ, or an environment
            appears twice.
        InvalidActionError: See `TextParallelEnv.step`.
        InfraError: If the sandbox fails.
    """
    check_choice("errors", errors, ("raise", "return"))
    _check_batch(envs, joint_actions, "actions")
    results: dict[int, StepResult | MlrlError] = {}
    batches: dict[object, list[_Pending]] = {}
    others: list[int] = []
    for index, (env, actions) in enumerate(zip(envs, joint_actions, strict=True)):
        if not actions and not env.agents:
            results[index] = ({}, {}, {}, {}, {})
        elif not is_batched(env):
            others.append(index)
        else:
            try:
                pending = (index, env, env.attempt(actions))
            except MlrlError as error:
                results[index] = _kept(error, errors)
                continue
            batches.setdefault(env.batch_key, []).append(pending)
    # All batches are scored before any environment advances, so that an error changes none.
    scored = [(batch, _score(batch, errors)) for batch in batches.values()]
    for batch, scores in scored:
        for (index, member, _), score in zip(batch, scores, strict=True):
            results[index] = score if isinstance(score, MlrlError) else member.advance(score)
    for index in others:
        try:
            check_joint_action(joint_actions[index])
            results[index] = envs[index].step(dict(joint_actions[index]))
        except MlrlError as error:
            results[index] = _kept(error, errors)
    ordered = [results[index] for index in range(len(envs))]
    return ordered if errors == "return" else cast("list[StepResult]", ordered)


def reset_many(
    envs: Sequence[TextEnv],
    seeds: Sequence[int | None],
    options: Sequence[Mapping[str, Any] | None],
    *,
    errors: Errors = "raise",
) -> list[ResetResult | MlrlError]:
    """Start an episode in several environments, as one request a server if they are remote.

    Args:
        envs: PettingZoo parallel environments, each at most once.
        seeds: One seed, or None, for each environment.
        options: One mapping, or None, for each environment.
        errors: As in `step_many`; with `"raise"`, earlier environments may have been reset.

    Returns:
        The result of `reset` of each environment, in order.

    Raises:
        InvalidArgumentError: If the lengths differ, an environment appears twice, or see `reset`.
        InfraError: If a server fails.
    """
    check_choice("errors", errors, ("raise", "return"))
    _check_batch(envs, seeds, "seeds")
    _check_batch(envs, options, "options")
    results: dict[int, ResetResult | MlrlError] = {}
    groups: dict[object, list[int]] = {}
    for index, env in enumerate(envs):
        if hasattr(env, "reset_batch"):
            groups.setdefault(env.batch_key, []).append(index)  # type: ignore[attr-defined]
            continue
        try:
            given = checked_options(options[index])
            results[index] = env.reset(seed=seeds[index], options=given)
        except MlrlError as error:
            results[index] = _kept(error, errors)
    for group in groups.values():
        first: Any = envs[group[0]]
        members = [envs[i] for i in group]
        found = first.reset_batch(members, [seeds[i] for i in group], [options[i] for i in group])
        for index, result in zip(group, found, strict=True):
            results[index] = _kept(result, errors) if isinstance(result, MlrlError) else result
    return [results[index] for index in range(len(envs))]


def _check_batch(envs: Sequence[TextEnv], given: Sequence[Any], name: str) -> None:
    check_list("envs", envs)
    check_list(name, given)
    if len(envs) != len(given):
        raise InvalidArgumentError(f"got {len(envs)} environments, {len(given)} {name}")
    if len({id(env) for env in envs}) != len(envs):
        raise InvalidArgumentError("the same environment appears twice: copy it first")


def _score(batch: Sequence[_Pending], errors: Errors) -> list[Any]:
    """Return the score of each attempt of a batch, or its error."""
    try:
        return batch[0][1].score_batch([env for _, env, _ in batch], [a for *_, a in batch], errors)
    except InfraError as error:
        if errors == "raise":
            raise
        if len(batch) == 1:
            return [error]
    # One failing program fails its batch; the others are scored alone.
    return [_score([pending], errors)[0] for pending in batch]


def _kept(error: MlrlError, errors: Errors) -> MlrlError:
    if errors == "raise":
        raise error
    return error.with_traceback(None)  # frames would keep the environments alive
