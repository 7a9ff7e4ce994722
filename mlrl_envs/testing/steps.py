"""Rules for the results of `reset` and `step`, each with an error that names it."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_envs.errors import ContractError
from mlrl_envs.shell.roster import acting_agents
from mlrl_envs.types import AgentID, StepResult, TextEnv

__all__ = [
    "INFO_KEYS",
    "check_acting",
    "check_infos",
    "check_observations",
    "check_step",
    "require",
]

INFO_KEYS = frozenset(("task_id", "turn", "components", "solved", "diagnostics"))
ACTS = "acts"  # may be missing where all agents act in every turn
TOLERANCE = 1e-9


def require(holds: bool, rule: str, found: object) -> None:
    """Raise `ContractError` with the rule and the value found, unless the rule holds."""
    if not holds:
        raise ContractError(f"{rule}; found {found!r}"[:1000])


def check_step(env: TextEnv, result: StepResult, turn: int, told: Sequence[AgentID]) -> None:
    """Check the result of a step.

    Args:
        env: The environment after the step.
        result: What `step` returned.
        turn: Number of the turn, from 1.
        told: The agents that were in the episode before the step.
    """
    observations, rewards, terminations, truncations, infos = result
    check_observations(env, observations, told)
    columns: Sequence[Mapping[AgentID, object]] = (rewards, terminations, truncations)
    for name, column in zip(("rewards", "terminations", "truncations"), columns, strict=True):
        require(set(column) == set(told), f"{name} have the agents' keys", column)
    for agent, reward in rewards.items():  # before infos, whose components may be made of them
        is_finite = isinstance(reward, float) and math.isfinite(reward)
        require(is_finite, f"the reward of {agent!r} is a finite float", reward)
    check_infos(infos, turn=turn, told=told)
    for agent in told:
        _check_range(env, agent, rewards[agent], infos[agent]["components"])
        ends = terminations[agent], truncations[agent]
        require(all(type(end) is bool for end in ends), "ends of an episode are bool", ends)
        require(ends != (True, True), "an episode is terminated or truncated, not both", ends)
        require((agent in env.agents) != any(ends), f"{agent!r} acts until its end", ends)
    require(set(env.agents) <= set(told), "agents that have left do not come back", env.agents)
    if turn == env.max_turns:
        require(not env.agents, f"the episode ends at max_turns = {turn}", env.agents)
    check_acting(env, infos)


def check_observations(
    env: TextEnv, observations: Mapping[AgentID, str], told: Sequence[AgentID]
) -> None:
    """Check that exactly the agents in `told` have an observation, in its space."""
    keys = set(observations)
    require(keys == set(told), "observations have the agents' keys", keys)
    for agent, text in observations.items():
        require(type(text) is str, f"what {agent!r} reads is a plain str", type(text))
        inside = env.observation_space(agent).contains(text)
        require(inside, f"what {agent!r} reads is in its space", text[:200])


def check_infos(
    infos: Mapping[AgentID, Mapping[str, Any]], *, turn: int, told: Sequence[AgentID]
) -> None:
    """Check the keys and the values of the infos after a turn."""
    keys = set(infos)
    require(keys == set(told), "infos have the agents' keys", keys)
    for agent, info in infos.items():
        require(
            set(info) - {ACTS} == INFO_KEYS,
            f"the info of {agent!r} has the keys {sorted(INFO_KEYS)}",
            sorted(info),
        )
        require(info["turn"] == turn, f"the info of {agent!r} says turn {turn}", info["turn"])
        require(type(info["solved"]) is bool, "solved is a bool", info["solved"])
        try:
            json.dumps(info, allow_nan=False)
        except (TypeError, ValueError) as error:
            require(False, f"the info of {agent!r} is JSON", error)


def check_acting(env: TextEnv, infos: Mapping[AgentID, Mapping[str, Any]]) -> None:
    """Check that some agents in the episode act next, and none outside it."""
    said = {agent: info[ACTS] for agent, info in infos.items() if ACTS in info}
    require(all(type(acts) is bool for acts in said.values()), "acts is a bool", said)
    require(
        not said or len(said) == len(infos), "acts is in the info of all agents or of none", said
    )
    gone = [agent for agent, acts in said.items() if acts and agent not in env.agents]
    require(not gone, "agents that have left do not act", gone)
    acting = acting_agents(env.agents, infos)
    require(bool(acting) == bool(env.agents), "somebody acts while the episode goes on", said)
    shown = getattr(env, "acting", acting)
    require(shown == acting, "acting names those whose info says that they act", shown)


def _check_range(env: TextEnv, agent: AgentID, reward: float, components: Any) -> None:  # noqa: ANN401  the value to be checked
    low, high = env.reward_range
    inside = low - TOLERANCE <= reward <= high + TOLERANCE
    require(inside, f"the reward of {agent!r} is in reward_range {low, high}", reward)
    total = math.fsum(components.values())
    same = math.isclose(total, reward, abs_tol=TOLERANCE)
    require(same, f"the components of {agent!r} sum to its reward {reward}", dict(components))
