"""Single-agent view of an environment: a fixed actor plays all other agents.

The adapters for single-agent trainers use it. Errors of infrastructure are raised and never become
a reward.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mlrl_envs
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.play.steps import acting_observations
from mlrl_learners.types import Actor, AgentID, Spectator

__all__ = ["Episode", "Seat"]


@dataclass
class Episode:
    """An episode in progress.

    Attributes:
        env: Environment of the episode.
        observations: Observations of the agents that act next.
        task_id: Id of the task; empty if the environment gives none.
        reward: Sum of the agent's rewards since its first turn.
        num_steps: Number of turns that the agent has played.
        is_solved: Whether the environment has reported the task as solved.
    """

    env: Any
    observations: Mapping[AgentID, str]
    task_id: str = ""
    reward: float = 0.0
    num_steps: int = 0
    is_solved: bool = field(default=False)


class Seat:
    """One agent of an environment, whose actions the caller provides.

    Args:
        env: A PettingZoo parallel environment; episodes play copies of it.
        agent: The agent; optional if there is only one.
        teammates: Actor of all other agents; required if there are any.
        seed: Seed of every episode; None continues the environment's own random state.

    Attributes:
        agent: The agent.

    Raises:
        UnknownNameError: If `agent` is not an agent of the environment.
        ConfigError: If there are several agents and `agent` or `teammates` is missing.
    """

    def __init__(
        self,
        env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
        *,
        agent: AgentID | None = None,
        teammates: Actor | None = None,
        seed: int | None = 0,
    ) -> None:
        agents: list[AgentID] = env.possible_agents
        if agent is not None and agent not in agents:
            raise unknown_name("agent", agent, agents)
        if len(agents) > 1 and (agent is None or teammates is None):
            raise ConfigError(
                f"{(env.metadata or {}).get('name')} has the agents {', '.join(agents)}: say which "
                "one learns (agent=...) and which actor plays the others (teammates=...)"
            )
        self.agent: AgentID = agent or agents[0]
        self._env, self._teammates, self._seed = env, teammates, seed

    def begin(
        self,
        indices: Sequence[int | None],
        *,
        seed: int | None = None,
        new_copies: bool = True,
    ) -> list[Episode]:
        """Start episodes, and play each until the agent's first turn.

        Args:
            indices: Task index of each episode; None for a task chosen by seed.
            seed: Seed of these episodes; None for the seed of the seat.
            new_copies: Play each episode on its own copy of the environment. If false, the
                environment itself is played, and there must be exactly one index.

        Raises:
            ConfigError: If a task ends before the agent acts.
            InfraError: If infrastructure fails.
        """
        begun = []
        for index in indices:
            env = copy.deepcopy(self._env) if new_copies else self._env
            options = {} if index is None else {"options": {"task_index": int(index)}}
            observations, infos = env.reset(seed=self._seed if seed is None else seed, **options)
            names = (str(info["task_id"]) for info in infos.values() if "task_id" in info)
            acting = acting_observations(env.agents, observations, infos)
            begun.append(Episode(env, acting, next(names, "")))
        self._wait(begun)
        for index, episode in zip(indices, begun, strict=True):
            if self.agent not in episode.observations:
                raise ConfigError(f"task {index} ended before {self.agent!r} acted")
            episode.reward = 0.0
        return begun

    def act(self, episodes: Sequence[Episode], texts: Sequence[str]) -> None:
        """Play the agent's turn of several episodes as one batch, and continue until its next one.

        Args:
            episodes: Episodes in which it is the agent's turn.
            texts: The agent's action in each episode.

        Raises:
            InfraError: If infrastructure fails.
        """
        self._step(episodes, [{self.agent: text} for text in texts])
        for episode in episodes:
            episode.num_steps += 1
        self._wait(episodes)

    def acts(self, episode: Episode) -> bool:
        """Return whether it is the agent's turn."""
        return self.agent in episode.env.agents and self.agent in episode.observations

    def _wait(self, episodes: Sequence[Episode]) -> None:
        """Play turns of the teammates until the agent's next turn or the end of the episode."""
        while waiting := [
            each
            for each in episodes
            if self.agent in each.env.agents and self.agent not in each.observations
        ]:
            self._step(waiting, [{} for _ in waiting])

    def _step(self, episodes: Sequence[Episode], own: Sequence[Mapping[AgentID, str]]) -> None:
        """Play one turn of several episodes as one batch, with the teammates' answers."""
        envs = [each.env for each in episodes]
        actions = [{**o, **a} for o, a in zip(self._others(episodes), own, strict=True)]
        for each, result in zip(episodes, mlrl_envs.step_many(envs, actions), strict=True):
            observations, rewards, *_, infos = result
            each.reward += float(rewards.get(self.agent, 0.0))
            each.observations = acting_observations(each.env.agents, observations, infos)
            each.is_solved = bool(infos.get(self.agent, {}).get("solved", each.is_solved))

    def _others(self, episodes: Sequence[Episode]) -> list[dict[AgentID, str]]:
        """Return the answers of the teammates that act."""
        if self._teammates is None:
            return [{} for _ in episodes]
        if isinstance(self._teammates, Spectator):
            self._teammates.watch([each.env for each in episodes])
        asked = [
            {a: text for a, text in each.observations.items() if a != self.agent}
            for each in episodes
        ]
        answers = self._teammates.act(asked, num_samples=1)
        return [{a: group[0].text for a, group in answer.items()} for answer in answers]
