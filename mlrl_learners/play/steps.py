"""Resets and steps of environments, with results that can be sent to other processes.

Works with any PettingZoo parallel environment whose observations and actions are text.
Environments need not be picklable, but their results must be.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import mlrl_envs
from mlrl_envs.errors import ContractError, InfraError, MlrlError
from mlrl_learners.processes.work_sharing import gather, spread
from mlrl_learners.types import AgentID
from mlrl_learners.types.contract import checked_float

__all__ = [
    "LOCAL_STEPS",
    "EnvReset",
    "EnvStep",
    "acting_observations",
    "has_artificial_limit",
    "raise_error",
    "reset_everywhere",
    "step_alone",
    "step_envs",
    "step_everywhere",
]

LOCAL_STEPS = threading.Lock()
"""Held by the thread that resets or steps environments of this process, which may share state."""
T = TypeVar("T")
FLOAT = frozenset((float,))
Infos = Mapping[AgentID, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class EnvReset:
    """Result of `ParallelEnv.reset`.

    Attributes:
        task_id: Id of the task; empty if the environment does not give one.
        agents: Every agent that may act in the episode, in the first turn or later.
        observations: Observations of the agents that act in the first turn.
        told: Observations of all agents that the environment returned one for.
        env_name: Environment of the episode in a mixture; empty for others.
    """

    task_id: str
    agents: tuple[AgentID, ...]
    observations: Mapping[AgentID, str]
    told: Mapping[AgentID, str]
    env_name: str = ""


@dataclass(frozen=True, slots=True)
class EnvStep:
    """Result of `ParallelEnv.step`.

    Attributes:
        observations: Next observation of each agent that the environment returned one for.
        rewards: Reward of each agent.
        terminations: Whether the task ended, for each agent.
        truncations: Whether the turn limit was reached, for each agent.
        infos: Info of each agent.
        agents: Agents that are still in the episode; empty at its end.
    """

    observations: Mapping[AgentID, str]
    rewards: Mapping[AgentID, float]
    terminations: Mapping[AgentID, bool]
    truncations: Mapping[AgentID, bool]
    infos: Infos
    agents: tuple[AgentID, ...]

    @property
    def next_observations(self) -> dict[AgentID, str]:
        """Observations of the agents that act in the next turn.

        Raises:
            ContractError: If the episode goes on and nobody acts.
        """
        return acting_observations(self.agents, self.observations, self.infos)

    @property
    def left(self) -> frozenset[AgentID]:
        """Agents that left the episode in this turn."""
        ends = (self.terminations, self.truncations)
        return frozenset(agent for each in ends for agent, end in each.items() if end)

    @property
    def components(self) -> dict[AgentID, Mapping[str, float]]:
        """Components of each reward; environments without components have the reward alone.

        Raises:
            ContractError: If a component is no number.
        """
        return {
            agent: _floats(
                self.infos.get(agent, {}).get("components", {"reward": reward}),
                f"the component of {agent!r} named",
            )
            for agent, reward in self.rewards.items()
        }

    @property
    def terminated(self) -> bool:
        """Whether the task ended for every agent."""
        return all(self.terminations.values())

    @property
    def truncated(self) -> bool:
        """Whether the episode ended for every agent, for at least one by the turn limit."""
        over = all(self.truncations[agent] or end for agent, end in self.terminations.items())
        return over and any(self.truncations.values())


def acting_observations(
    agents: Sequence[AgentID], observations: Mapping[AgentID, str], infos: Infos
) -> dict[AgentID, str]:
    """Return the observations of the agents that act in the next turn.

    An agent without the key `acts` in its info acts.

    Args:
        agents: Agents that are still in the episode.
        observations: Observations that the environment returned.
        infos: Infos that the environment returned.

    Raises:
        ContractError: If there are agents in the episode and none of them acts.
    """
    there = set(agents)
    found = {
        agent: text
        for agent, text in observations.items()
        if agent in there and infos.get(agent, {}).get("acts", True)
    }
    if agents and not found:
        raise ContractError(f"none of {', '.join(agents)} acts, although the episode goes on")
    return found


def has_artificial_limit(env: Any) -> bool:  # noqa: ANN401 - any PettingZoo parallel environment
    """Return whether an environment declares that its turn limit is not part of the task."""
    return bool((getattr(env, "metadata", None) or {}).get("artificial_limit", False))


def reset_everywhere(
    envs: Sequence[Any], task_options: Sequence[Mapping[str, Any]], seeds: Sequence[int]
) -> list[EnvReset | InfraError]:
    """Reset each environment in the process that plays it; return the results in all processes.

    Args:
        envs: The environments.
        task_options: Options of each `reset`.
        seeds: Seed of each `reset`.

    Returns:
        Result of each reset, or the error of its infrastructure.
    """

    def reset(ours: list[int]) -> dict[int, EnvReset | InfraError]:
        given = [envs[i] for i in ours], [seeds[i] for i in ours], [task_options[i] for i in ours]
        found = mlrl_envs.reset_many(*given, errors="return")
        return {i: _begun(envs[i], each) for i, each in zip(ours, found, strict=True)}

    return spread([1.0] * len(envs), reset)


def step_everywhere(
    envs: Mapping[int, Any], joint_actions: Mapping[int, Mapping[AgentID, str]]
) -> dict[int, EnvStep]:
    """Step each environment in the process that plays it; return the results in all processes.

    Args:
        envs: Environments of this process, by number.
        joint_actions: Joint actions of all environments, by number.

    Raises:
        InfraError: If the infrastructure fails in any process.
    """
    found: dict[int, EnvStep | InfraError]
    try:
        steps = step_envs(list(envs.values()), [joint_actions[i] for i in envs])
        found = dict(zip(envs, steps, strict=True))
    except InfraError as error:  # sent to all processes, which would otherwise wait for this one
        found = dict.fromkeys(envs, error)
    return {i: raise_error(step) for i, step in gather(found).items()}


def step_envs(envs: Sequence[Any], joint_actions: Sequence[Mapping[AgentID, str]]) -> list[EnvStep]:
    """Step many environments as one batch.

    Raises:
        InfraError: If the infrastructure of one of them fails.
        ContractError: If a reward is no number, or an episode that ended goes on.
    """
    results = mlrl_envs.step_many(envs, joint_actions)
    return [_played(env, result) for env, result in zip(envs, results, strict=True)]


def step_alone(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    actions: Mapping[AgentID, str],
) -> EnvStep | InfraError:
    """Step one environment; return the error if its infrastructure fails."""
    try:
        return step_envs([env], [actions])[0]
    except InfraError as error:
        return error


def raise_error(result: T | InfraError) -> T:
    """Return a result, or raise it if it is an error."""
    if isinstance(result, InfraError):
        raise result
    return result


def _played(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    result: Any,  # noqa: ANN401 - the result of its `step`
) -> EnvStep:
    observations, rewards, terminations, truncations, infos = result
    agents, paid = tuple(env.agents), _floats(rewards, "the reward of")
    if agents and all(terminations.get(each) or truncations.get(each) for each in agents):
        raise ContractError(
            f"the episode ended for {', '.join(agents)}, which stay in env.agents: "
            f"{type(env).__name__}.step must remove agents that are terminated or truncated"
        )
    return EnvStep(observations, paid, terminations, truncations, infos, agents)


def _floats(values: Mapping[str, float], what: str) -> Mapping[str, float]:
    if FLOAT.issuperset(map(type, values.values())):  # of nearly all environments
        return values
    return {name: checked_float(value, f"{what} {name!r}") for name, value in values.items()}


def _begun(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    found: Any,  # noqa: ANN401 - the result of a reset, or its error
) -> EnvReset | InfraError:
    if isinstance(found, InfraError):
        return found
    if isinstance(found, MlrlError):
        raise found
    observations, infos = found
    names = (str(info["task_id"]) for info in infos.values() if "task_id" in info)
    # A mixture has the agents of all its environments, and an episode is of one of them.
    there = getattr(env, "episode_agents", None) or getattr(env, "possible_agents", None) or ()
    agents = tuple(dict.fromkeys([*there, *observations]))
    acting = acting_observations(tuple(observations), observations, infos)
    name = getattr(env, "episode_env", "")
    return EnvReset(next(names, ""), agents, acting, dict(observations), name)
