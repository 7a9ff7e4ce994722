"""What comes of joint actions, in a form that can be told to other processes.

Environments need not be picklable; what they say is. Works on any PettingZoo parallel environment
whose observations and actions are text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_learners.types import AgentID

__all__ = ["Opening", "Outcome", "open_episode", "step_alone", "step_envs"]

Infos = Mapping[AgentID, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Opening:
    """How an episode begins: its task, if the environment names it, and what each agent reads."""

    task_id: str
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


def open_episode(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    options: Mapping[str, Any],
    seed: int,
) -> Opening:
    """Reset an environment."""
    observations, infos = env.reset(seed=seed, options=dict(options))
    names = (str(info["task_id"]) for info in infos.values() if "task_id" in info)
    return Opening(next(names, ""), dict(observations))


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
