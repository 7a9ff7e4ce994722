"""What comes of joint actions, in a form that can be told to other processes.

Environments need not be picklable; what they say is. Works on any PettingZoo parallel environment
whose observations and actions are text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_learners.processes.work_sharing import gather, spread
from mlrl_learners.types import AgentID

__all__ = [
    "Opening",
    "Outcome",
    "has_artificial_limit",
    "open_everywhere",
    "raised",
    "step_alone",
    "step_envs",
    "step_everywhere",
]

T = TypeVar("T")
Infos = Mapping[AgentID, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Opening:
    """How an episode begins.

    Attributes:
        task_id: Empty where the environment does not name it.
        agents: Everybody who may act in it, whether asked at once or later.
        observations: What is read by those who are asked first.
    """

    task_id: str
    agents: tuple[AgentID, ...]
    observations: Mapping[AgentID, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `ParallelEnv.step` returned, and who plays on.

    Attributes:
        agents: Who has not left; empty where the episode is over.
    """

    observations: Mapping[AgentID, str]
    rewards: Mapping[AgentID, float]
    terminations: Mapping[AgentID, bool]
    truncations: Mapping[AgentID, bool]
    infos: Infos
    agents: tuple[AgentID, ...]

    @property
    def asked(self) -> dict[AgentID, str]:
        """What is read next by those who play on; others may have been told something, too."""
        return {agent: text for agent, text in self.observations.items() if agent in self.agents}

    @property
    def components(self) -> dict[AgentID, Mapping[str, float]]:
        """The parts of each reward; a stranger's environment has just the one."""
        return {
            agent: self.infos.get(agent, {}).get("components", {"reward": float(reward)})
            for agent, reward in self.rewards.items()
        }

    @property
    def terminated(self) -> bool:
        """Whether the task ended by itself for everybody."""
        return all(self.terminations.values())

    @property
    def truncated(self) -> bool:
        """Whether it is over for everybody, and for somebody only by the turn limit."""
        over = all(self.truncations[agent] or end for agent, end in self.terminations.items())
        return over and any(self.truncations.values())


def has_artificial_limit(env: Any) -> bool:  # noqa: ANN401 - any PettingZoo parallel environment
    """Return whether an environment says that its turn limit is no part of the task."""
    return bool((getattr(env, "metadata", None) or {}).get("artificial_limit", False))


def open_everywhere(
    envs: Sequence[Any], task_options: Sequence[Mapping[str, Any]], seeds: Sequence[int]
) -> list[Opening | InfraError]:
    """Reset each environment in the process that plays it, and tell all what is read there.

    Returns:
        For each environment how it begins, or the error where its machinery fails.
    """
    jobs = list(zip(envs, task_options, seeds, strict=True))
    return spread([1.0] * len(jobs), lambda ours: {i: _open(*jobs[i]) for i in ours})


def step_everywhere(
    envs: Mapping[int, Any], joint_actions: Mapping[int, Mapping[AgentID, str]]
) -> dict[int, Outcome]:
    """Step the environments of all processes, and tell all what came of them.

    Args:
        envs: Those of this process, by number.
        joint_actions: For all of them.

    Raises:
        InfraError: If the machinery fails, in whichever process.
    """
    found: dict[int, Outcome | InfraError]
    try:
        outcomes = step_envs(list(envs.values()), [joint_actions[i] for i in envs])
        found = dict(zip(envs, outcomes, strict=True))
    except InfraError as error:  # all must hear of it, or they go on without this process
        found = dict.fromkeys(envs, error)
    return {i: raised(outcome) for i, outcome in gather(found).items()}


def step_envs(envs: Sequence[Any], joint_actions: Sequence[Mapping[AgentID, str]]) -> list[Outcome]:
    """Step many environments as one batch.

    Raises:
        InfraError: If the machinery of one of them fails.
    """
    results = mlrl_envs.step_many(envs, joint_actions)
    return [Outcome(*result, tuple(env.agents)) for env, result in zip(envs, results, strict=True)]


def step_alone(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    actions: Mapping[AgentID, str],
) -> Outcome | InfraError:
    """Step one environment; return the error where its machinery fails."""
    try:
        return step_envs([env], [actions])[0]
    except InfraError as error:
        return error


def raised(found: T | InfraError) -> T:
    """Return what was found, or raise it where it is an error."""
    if isinstance(found, InfraError):
        raise found
    return found


def _open(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    options: Mapping[str, Any],
    seed: int,
) -> Opening | InfraError:
    try:
        observations, infos = env.reset(seed=seed, options=dict(options))
    except InfraError as error:
        return error
    names = (str(info["task_id"]) for info in infos.values() if "task_id" in info)
    agents = dict.fromkeys([*(getattr(env, "possible_agents", None) or ()), *observations])
    return Opening(next(names, ""), tuple(agents), dict(observations))
