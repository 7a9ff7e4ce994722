"""Checks of what one reset or one step of an environment returns."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_envs.errors import ContractError
from mlrl_envs.types import AgentID, StepResult, TextEnv

__all__ = ["INFO_KEYS", "check_infos", "check_observations", "check_step", "require"]

INFO_KEYS = frozenset(("task_id", "turn", "components", "solved", "diagnostics"))
TOLERANCE = 1e-9


def check_step(env: TextEnv, result: StepResult, turn: int) -> None:
    """Check the result of the step of a turn, counted from 1."""
    observations, rewards, terminations, truncations, infos = result
    agents = env.possible_agents
    check_observations(env, observations)
    check_infos(env, infos, turn=turn)
    columns: Sequence[Mapping[AgentID, object]] = (rewards, terminations, truncations)
    for name, column in zip(("rewards", "terminations", "truncations"), columns, strict=True):
        require(set(column) == set(agents), f"{name} have the agents' keys", column)
    for agent in agents:
        _check_reward(env, agent, rewards[agent], infos[agent]["components"])
        ends = terminations[agent], truncations[agent]
        require(all(type(end) is bool for end in ends), "ends of an episode are bool", ends)
        require(ends != (True, True), "an episode is terminated or truncated, not both", ends)
        require((agent in env.agents) != any(ends), f"{agent!r} acts until its end", ends)
    if turn == env.max_turns:
        require(not env.agents, f"the episode ends at max_turns = {turn}", env.agents)


def _check_reward(env: TextEnv, agent: AgentID, reward: float, components: Any) -> None:  # noqa: ANN401  the value to be checked
    require(
        isinstance(reward, float) and math.isfinite(reward), "rewards are finite floats", reward
    )
    assert isinstance(reward, float)  # noqa: S101  for the type checker
    low, high = env.reward_range
    inside = low - TOLERANCE <= reward <= high + TOLERANCE
    require(inside, f"the reward of {agent!r} is in reward_range {low, high}", reward)
    total = math.fsum(components.values())
    same = math.isclose(total, reward, abs_tol=TOLERANCE)
    require(same, f"the components of {agent!r} sum to its reward {reward}", dict(components))


def check_observations(env: TextEnv, observations: Mapping[AgentID, str]) -> None:
    """Check that every agent reads a text of its space."""
    keys = set(observations)
    require(keys == set(env.possible_agents), "observations have the agents' keys", keys)
    for agent, text in observations.items():
        require(type(text) is str, f"what {agent!r} reads is a plain str", type(text))
        inside = env.observation_space(agent).contains(text)
        require(inside, f"what {agent!r} reads is in its space", text[:200])


def check_infos(env: TextEnv, infos: Mapping[AgentID, Mapping[str, Any]], *, turn: int) -> None:
    """Check the keys and the values of the infos of a turn."""
    keys = set(infos)
    require(keys == set(env.possible_agents), "infos have the agents' keys", keys)
    for agent, info in infos.items():
        require(
            set(info) == INFO_KEYS,
            f"the info of {agent!r} has the keys {sorted(INFO_KEYS)}",
            sorted(info),
        )
        require(info["turn"] == turn, f"the info of {agent!r} says turn {turn}", info["turn"])
        require(type(info["solved"]) is bool, "solved is a bool", info["solved"])
        try:
            json.dumps(info, allow_nan=False)
        except (TypeError, ValueError) as error:
            require(False, f"the info of {agent!r} is JSON", error)


def require(holds: bool, rule: str, found: object) -> None:
    """Raise a ContractError with the rule and the value found, unless the rule holds."""
    if not holds:
        raise ContractError(f"{rule}; found {found!r}"[:1000])
