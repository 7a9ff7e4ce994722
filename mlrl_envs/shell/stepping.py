"""Batched steps: environments that share a family are scored together."""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.shell.runner import SharedSandbox
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, StepResult, TextEnv, Turn

__all__ = ["step_many"]

_Pending = tuple[int, TextParallelEnv, Attempt[Any]]


def step_many(
    envs: Sequence[TextEnv],
    joint_actions: Sequence[Mapping[AgentID, str]],
) -> list[StepResult]:
    """Step several environments; those that share a family and a sandbox are scored as one batch.

    An environment without a running episode takes an empty joint action and returns five empty
    dicts. If a joint action for a `TextParallelEnv` is invalid, no environment is stepped.

    Args:
        envs: PettingZoo parallel environments, each at most once.
        joint_actions: One mapping for each environment.

    Returns:
        The result of `step` of each environment, in order.

    Raises:
        InvalidArgumentError: If the lengths differ, or an environment appears twice.
        InvalidActionError: See `TextParallelEnv.step`.
        InfraError: If the sandbox fails.
    """
    _check_lengths(envs, joint_actions)
    results: dict[int, StepResult] = {}
    batches: dict[tuple[int, int], list[_Pending]] = {}
    others: list[int] = []
    for index, (env, actions) in enumerate(zip(envs, joint_actions, strict=True)):
        if not actions and not env.agents:
            results[index] = ({}, {}, {}, {}, {})
        elif isinstance(env, TextParallelEnv):
            key = (id(env.family), _sandbox_key(env.sandbox))
            batches.setdefault(key, []).append((index, env, env.attempt(actions)))
        else:
            others.append(index)
    # All batches are scored before any environment advances, so that an error changes none.
    scored = [(batch, _score_batch(batch)) for batch in batches.values()]
    for batch, scores in scored:
        for (index, env, attempt), score in zip(batch, scores, strict=True):
            results[index] = env.advance(Turn(attempt.actions, score))
    for index in others:
        results[index] = envs[index].step(dict(joint_actions[index]))
    return [results[index] for index in range(len(envs))]


def _check_lengths(envs: Sequence[TextEnv], joint_actions: Sequence[Mapping[AgentID, str]]) -> None:
    if len(envs) != len(joint_actions):
        raise InvalidArgumentError(f"got {len(envs)} environments, {len(joint_actions)} actions")
    if len({id(env) for env in envs}) != len(envs):
        raise InvalidArgumentError("the same environment appears twice: copy it first")


def _score_batch(batch: Sequence[_Pending]) -> list[Score]:
    first = batch[0][1]
    return first.family.score([attempt for *_, attempt in batch], first.sandbox)


def _sandbox_key(sandbox: ProgramRunner) -> int:
    return hash(sandbox) if isinstance(sandbox, SharedSandbox) else id(sandbox)
