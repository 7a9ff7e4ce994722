"""Scored episodes of joint actions on one task of any text environment.

Copies of the environment are stepped as one batch with `step_many`. An environment that cannot be
copied is reset to the task for every joint action. Failures of the infrastructure propagate.
"""

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.auditing.scene import JointAction
from mlrl_envs.errors import InfraError, InvalidArgumentError
from mlrl_envs.shell.stepping import step_many
from mlrl_envs.types import AgentID, StepResult, TextEnv

__all__ = [
    "Place",
    "Rewards",
    "check_names",
    "draw_places",
    "play",
    "play_each",
    "start",
]

Rewards = tuple[float, ...]
"""Mean reward over agents of each turn of an episode."""

NEEDED = {
    "possible_agents": "all agents, in a fixed order",
    "metadata": "a mapping with a name",
    "reward_range": "the lowest and the highest reward of one turn",
    "acting": "the agents that are asked at the next step",
}
_BATCH = 32
_MAX_TURNS = 50  # for environments that do not say how long an episode is


@dataclass(frozen=True)
class Place:
    """How an environment is reset to a task.

    Attributes:
        seed: Seed of the reset.
        options: Options of the reset: `task_index` or `task_id`, or nothing.
    """

    seed: int
    options: Mapping[str, Any]


def check_names(env: TextEnv, names: Sequence[str]) -> None:
    """Check that an environment has attributes that an audit needs; `names` are keys of `NEEDED`.

    Raises:
        InvalidArgumentError: If it lacks some; the message lists them.
    """
    lacking = [f"{name} ({NEEDED[name]})" for name in names if not hasattr(env, name)]
    if lacking:
        raise InvalidArgumentError(
            f"{type(env).__name__} has no {', '.join(lacking)}, which the audit needs"
        )


def draw_places(env: TextEnv, count: int, seed: int) -> list[Place]:
    """Draw different tasks; an environment without `num_tasks` draws them itself from seeds.

    Raises:
        InvalidArgumentError: If the environment has no tasks.
    """
    total = getattr(env, "num_tasks", None)
    if not isinstance(total, int):
        return [Place(seed + number, {}) for number in range(count)]
    if total < 1:
        raise InvalidArgumentError(f"an audit needs num_tasks of at least 1, got {total}")
    rng = random.Random(f"{seed}/tasks")  # noqa: S311  must be deterministic
    indices = rng.sample(range(total), min(count, total))
    return [Place(seed, {"task_index": index}) for index in indices]


def start(env: TextEnv, place: Place) -> tuple[str, dict[AgentID, str]]:
    """Reset an environment and return the id of the task and the observations."""
    observations, infos = env.reset(seed=place.seed, options=dict(place.options))
    first: Mapping[str, Any] = next(iter(infos.values()), {}) if infos else {}
    name = first.get("task_id") or place.options.get("task_index", place.seed)
    return str(name), dict(observations)


def play(
    env: TextEnv, place: Place, episodes: Sequence[Sequence[JointAction]], *, keep: bool = True
) -> list[Rewards]:
    """Play episodes of one task and return the rewards of each.

    Args:
        env: The environment; it is reset.
        place: The task.
        episodes: Joint actions of the turns, at least one for each episode.
        keep: Whether the last joint action is repeated until the end of the episode; otherwise the
            episode is left after it.

    Raises:
        InvalidArgumentError: If a reward is not a number.
        InfraError: If the infrastructure fails.
    """
    start(env, place)
    copies = _copies(env, len(episodes))
    if copies is not None:
        return _play_batch(copies, episodes, keep=keep)
    rewards = []
    for episode in episodes:
        start(env, place)
        rewards += _play_batch([env], [episode], keep=keep)
    return rewards


def play_each(
    env: TextEnv, episodes: Sequence[tuple[Place, Sequence[JointAction]]], *, keep: bool
) -> list[Rewards]:
    """Play one episode on each of several tasks, in batches, and return their rewards.

    See `play` for `keep`.

    Raises:
        InvalidArgumentError: If a reward is not a number.
        InfraError: If the infrastructure fails.
    """
    rewards: list[Rewards] = []
    for first in range(0, len(episodes), _BATCH):
        copies: list[TextEnv] = []
        for place, _ in episodes[first : first + _BATCH]:
            start(env, place)
            copies += _copies(env, 1) or []
        turns = [turns for _, turns in episodes[first : first + _BATCH]]
        if len(copies) == len(turns):
            rewards += _play_batch(copies, turns, keep=keep)
        else:
            for place, actions in episodes[first : first + _BATCH]:
                rewards += play(env, place, [actions], keep=keep)
    return rewards


def _copies(env: TextEnv, count: int) -> list[TextEnv] | None:
    try:
        return [copy.deepcopy(env) for _ in range(count)]
    except InfraError:
        raise
    except Exception:  # noqa: BLE001  a third party's environment may not be made to be copied
        return None


def _play_batch(
    envs: Sequence[TextEnv], episodes: Sequence[Sequence[JointAction]], *, keep: bool
) -> list[Rewards]:
    rewards: list[list[float]] = [[] for _ in envs]
    running = list(range(len(envs)))
    turn = 0
    while running and turn < _MAX_TURNS:
        actions = [
            _of_agents(episodes[i][min(turn, len(episodes[i]) - 1)], envs[i].agents)
            for i in running
        ]
        results = step_many([envs[i] for i in running], actions)
        turn += 1
        for i, result in zip(running, results, strict=True):
            rewards[i].append(_mean(result))
        running = [
            i
            for i, result in zip(running, results, strict=True)
            if not _is_over(envs[i], result) and (keep or turn < len(episodes[i]))
        ]
    return [tuple(found) for found in rewards]


def _of_agents(action: JointAction, agents: Sequence[AgentID]) -> dict[AgentID, str]:
    return {agent: action.get(agent, "") for agent in agents}


def _mean(result: StepResult) -> float:
    try:
        rewards = [float(value) for value in result[1].values()]
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"an audit needs rewards that are numbers, got {dict(result[1])}"
        ) from error
    return sum(rewards) / len(rewards) if rewards else 0.0


def _is_over(env: TextEnv, result: StepResult) -> bool:
    _, _, terminations, truncations, _ = result
    ended = [terminations[agent] or truncations[agent] for agent in terminations]
    return not env.agents or all(ended)
