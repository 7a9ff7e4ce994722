"""Single-agent view of an environment: a fixed actor plays all other agents.

The adapters for single-agent trainers use it. What teammates play before the agent's first turn is
drawn once for each task, so that a task always begins at the same position. Errors of
infrastructure are raised and never become a reward.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mlrl_envs
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.play.jobs import sampling_from
from mlrl_learners.play.steps import acting_observations
from mlrl_learners.seeding import derive_seed
from mlrl_learners.types import Actor, AgentID, Spectator
from mlrl_learners.types.contract import check_answers

__all__ = ["Episode", "Seat"]

JointAction = dict[AgentID, str]


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
        opening: Turns of the teammates that are already drawn and not yet played.
    """

    env: Any
    observations: Mapping[AgentID, str]
    task_id: str = ""
    reward: float = 0.0
    num_steps: int = 0
    is_solved: bool = field(default=False)
    opening: list[JointAction] = field(default_factory=list)


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
        self._openings: dict[int | None, list[JointAction]] = {}

    def begin(
        self,
        indices: Sequence[int | None],
        *,
        seed: int | None = None,
        new_copies: bool = True,
    ) -> list[Episode]:
        """Start episodes, and play each until the agent's first turn.

        Teammates that act before it draw from the seed and the task if they have `sampling_seed`.
        With the seed of the seat, later episodes of a task repeat what they played in the first.

        Args:
            indices: Task index of each episode; None for a task chosen by seed.
            seed: Seed of these episodes; None for the seed of the seat.
            new_copies: Play each episode on its own copy of the environment. If false, the
                environment itself is played, and there must be exactly one index.

        Raises:
            ConfigError: If a task ends before the agent acts.
            ContractError: If the teammates do not answer what they are asked.
            InfraError: If infrastructure fails.
        """
        openings = self._openings if seed is None and self._seed is not None else {}
        seed = self._seed if seed is None else seed
        begun = []
        for index in indices:
            env = copy.deepcopy(self._env) if new_copies else self._env
            episode = self._reset(index, seed, env)
            if index in openings:
                episode.opening = list(openings[index])
            else:
                openings[index] = self._open(episode, index, seed)
            begun.append(episode)
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
            ContractError: If the teammates do not answer what they are asked.
            InfraError: If infrastructure fails.
        """
        others = self._others(episodes)
        self._step(
            episodes, [{**o, self.agent: text} for o, text in zip(others, texts, strict=True)]
        )
        for episode in episodes:
            episode.num_steps += 1
        self._wait(episodes)

    def acts(self, episode: Episode) -> bool:
        """Return whether it is the agent's turn."""
        return self.agent in episode.env.agents and self.agent in episode.observations

    def _reset(
        self,
        index: int | None,
        seed: int | None,
        env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    ) -> Episode:
        options = {} if index is None else {"options": {"task_index": int(index)}}
        observations, infos = env.reset(seed=seed, **options)
        names = (str(info["task_id"]) for info in infos.values() if "task_id" in info)
        acting = acting_observations(env.agents, observations, infos)
        return Episode(env, acting, next(names, ""))

    def _open(self, episode: Episode, index: int | None, seed: int | None) -> list[JointAction]:
        """Play until the agent's first turn, and return what the teammates played."""
        played: list[JointAction] = []
        if self._teammates is None or seed is None:
            return played
        number = -1 if index is None else int(index)
        with sampling_from(self._teammates, derive_seed(seed, number)):
            while self._waits(episode):
                others = self._others([episode])
                self._step([episode], others)
                played += others
        return played

    def _waits(self, episode: Episode) -> bool:
        return self.agent in episode.env.agents and self.agent not in episode.observations

    def _wait(self, episodes: Sequence[Episode]) -> None:
        """Play turns of the teammates until the agent's next turn or the end of the episode."""
        while waiting := [each for each in episodes if self._waits(each)]:
            self._step(waiting, self._others(waiting))

    def _step(self, episodes: Sequence[Episode], actions: Sequence[JointAction]) -> None:
        """Play one turn of several episodes as one batch."""
        envs = [each.env for each in episodes]
        for each, result in zip(episodes, mlrl_envs.step_many(envs, actions), strict=True):
            observations, rewards, *_, infos = result
            each.reward += float(rewards.get(self.agent, 0.0))
            each.observations = acting_observations(each.env.agents, observations, infos)
            each.is_solved = bool(infos.get(self.agent, {}).get("solved", each.is_solved))

    def _others(self, episodes: Sequence[Episode]) -> list[JointAction]:
        """Return the answers of the teammates that act: of the opening, or drawn now."""
        drawn = iter(self._drawn([each for each in episodes if not each.opening]))
        return [each.opening.pop(0) if each.opening else next(drawn) for each in episodes]

    def _drawn(self, episodes: Sequence[Episode]) -> list[JointAction]:
        if self._teammates is None or not episodes:
            return [{} for _ in episodes]
        if isinstance(self._teammates, Spectator):
            self._teammates.watch([each.env for each in episodes])
        asked = [
            {a: text for a, text in each.observations.items() if a != self.agent}
            for each in episodes
        ]
        answers = self._teammates.act(asked, num_samples=1)
        check_answers(answers, asked, 1, f"{type(self._teammates).__name__}.act")
        return [{a: group[0].text for a, group in answer.items()} for answer in answers]
