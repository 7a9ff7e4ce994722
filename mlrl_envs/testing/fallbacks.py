"""Names that the contract adds to those of PettingZoo, and their defaults in a check.

An environment that passes PettingZoo's `parallel_api_test` can be played, trained on and evaluated.
It may lack what this module lists; commands then do without it.
"""

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, cast

from gymnasium.spaces import Text
from pettingzoo import ParallelEnv

from mlrl_envs.errors import ContractError, InvalidArgumentError
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.shell.roster import acting_agents
from mlrl_envs.types import AgentID, TextEnv

__all__ = ["OPTIONAL", "REQUIRED", "Completed", "completing", "what_it_lacks"]

REQUIRED = {
    "possible_agents": "all agents, in a fixed order",
    "agents": "agents that are still in the episode, [] before reset",
    "metadata": "a mapping with a name",
    "observation_space": "a function of an agent",
    "action_space": "a function of an agent",
    "reset": "reset(seed=None, options=None) returns observations and infos",
    "step": "step(actions) returns observations, rewards, terminations, truncations, infos",
}
OPTIONAL: Mapping[str, tuple[str, Any]] = {
    "reward_range": ("bounds of a reward, for validate", (-math.inf, math.inf)),
    "max_turns": ("turns of an episode, for the budgets of suites", 1000),
    "num_tasks": ("tasks of the split, for orders of tasks, evaluate, validate and suites", 1),
    "reference_actions": ("correct actions or None, for validate and --actor reference", None),
    "state": ("the joint observation as a str, for critics of other packages", ""),
}
INFOS: Mapping[str, Callable[[int, float], Any]] = {
    "task_id": lambda _turn, _reward: "",
    "turn": lambda turn, _reward: turn,
    "components": lambda _turn, reward: {"reward": reward},
    "solved": lambda _turn, _reward: False,
    "diagnostics": lambda _turn, _reward: {},
}


def completing(make_env: Callable[[], TextEnv]) -> Callable[[], TextEnv]:
    """Return a function that makes the environment, completed unless it is a `TextParallelEnv`.

    Raises:
        ContractError: If it lacks a required name; the message lists all of them.
        InvalidArgumentError: If the argument is no function.
    """
    if not callable(make_env):
        raise InvalidArgumentError(
            "check_env takes a function that makes an environment, such as "
            f"lambda: mlrl_envs.make('mlrl/story-v1'), got {make_env!r}"
        )
    if isinstance(make_env(), TextParallelEnv):
        return make_env
    Completed(make_env())
    return lambda: cast("TextEnv", Completed(make_env()))


def what_it_lacks(env: TextEnv, seed: int) -> str:
    """Return a line about the names and keys that a completed environment lacks; empty for none."""
    if not isinstance(env, Completed):
        return ""
    _, infos = env.reset(seed=seed)
    env.step(dict.fromkeys(acting_agents(env.agents, infos), ""))
    told = [f"{name} ({OPTIONAL[name][0]})" if name in OPTIONAL else name for name in env.filled]
    if not told:
        return ""
    return f"the environment works without {', '.join(sorted(told))}; fall-backs were checked"


class Completed:
    """An environment with fall-backs for what it lacks, so that the rest can be checked.

    Args:
        env: Any parallel environment with text spaces.
    """

    def __init__(self, env: Any) -> None:  # noqa: ANN401  any environment
        self.env, self.turn = env, 0
        self.filled: set[str] = set(_missing_names(env))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  that of the environment
        if name.startswith("__") or name in ("env", "filled"):  # while it is unpickled
            raise AttributeError(name)
        if name not in self.filled:
            return getattr(self.env, name)
        value = OPTIONAL[name][1]
        return (lambda: value) if name in ("reference_actions", "state") else value

    @property
    def state_space(self) -> Any:  # noqa: ANN401  a gymnasium space
        """The space of `state`; any text for an environment without one."""
        return getattr(self.env, "state_space", None) or Text(1, min_length=0)

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401
        """Reset the environment; infos get the keys that they lack."""
        observations, infos = self.env.reset(seed=seed, options=dict(options or {}))
        self.turn = 0
        return observations, self._infos(infos, {})

    def step(self, actions: Mapping[AgentID, str]) -> Any:  # noqa: ANN401  five mappings
        """Step the environment; infos get the keys that they lack, and real rewards are floats."""
        observations, given, terminations, truncations, infos = self.env.step(actions)
        rewards = {agent: _as_float(reward) for agent, reward in given.items()}
        self.turn += 1
        return observations, rewards, terminations, truncations, self._infos(infos, rewards)

    def _infos(self, infos: Any, rewards: Mapping[AgentID, float]) -> dict[AgentID, dict[str, Any]]:  # noqa: ANN401
        completed = {}
        for agent, info in infos.items():
            lacking = [name for name in INFOS if name not in info]
            self.filled |= {f"infos[agent][{name!r}]" for name in lacking}
            made = {name: INFOS[name](self.turn, rewards.get(agent, 0.0)) for name in lacking}
            completed[agent] = {**made, **info}
        return completed


def _as_float(reward: Any) -> Any:  # noqa: ANN401  any value, which the check may refuse
    is_number = isinstance(reward, Real) and not isinstance(reward, bool)
    return float(reward) if is_number else reward


def _missing_names(env: object) -> list[str]:
    """Return the optional names that an environment lacks.

    Raises:
        ContractError: If it lacks a required name; the message lists all of them.
    """
    needed = [f"{name} ({text})" for name, text in REQUIRED.items() if not hasattr(env, name)]
    if needed:
        raise ContractError(f"an environment has {', '.join(needed)}; found {type(env).__name__}")
    has_no_state = getattr(type(env), "state", None) is ParallelEnv.state  # it raises
    return [
        name for name in OPTIONAL if not hasattr(env, name) or (name == "state" and has_no_state)
    ]
