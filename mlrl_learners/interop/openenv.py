"""OpenEnv servers of mlrl environments, over OpenEnv's HTTP and WebSocket protocol.

    app = openenv_app("mlrl/humaneval-v1", num_aux=0)
    uvicorn.run(app, port=8000)

If the client plays one agent (the only one, or `agent` while `teammates` plays the others), an
action is `{"text": ...}` and an observation `{"text": ...}`. If it plays all agents of a team, an
action is `{"actions": {agent: text}}` and an observation contains texts and rewards by agent; the
scalar reward is the mean over agents. `reset` takes `seed` and `task_index`. Each connection has
its own environment.

Requires `openenv-core`, which is not a dependency of mlrl. See `mlrl_envs.serve` for a server with
batches, forks, replays and access control.
"""

import copy
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from openenv.core.env_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State
from pydantic import Field

import mlrl_envs
from mlrl_learners.errors import ConfigError
from mlrl_learners.interop.seat import Episode, Seat
from mlrl_learners.play.steps import acting_observations
from mlrl_learners.types import Actor, AgentID

__all__ = ["SeatEnvironment", "TeamEnvironment", "openenv_app"]


class TextAction(Action):  # type: ignore[misc]  # openenv is no dependency
    """The action of one agent."""

    text: str = Field(description="The whole answer to the last observation")


class TextObservation(Observation):  # type: ignore[misc]
    """What one agent reads; empty at the end of an episode."""

    text: str = ""
    task_id: str = ""
    solved: bool = False


class TeamAction(Action):  # type: ignore[misc]
    """The actions of all agents that act."""

    actions: dict[str, str] = Field(description="The answer of each agent that acts, by agent")


class TeamObservation(Observation):  # type: ignore[misc]
    """What the agents that act next read, and what all of them earned in this turn."""

    texts: dict[str, str] = Field(default_factory=dict)
    rewards: dict[str, float] = Field(default_factory=dict)
    task_id: str = ""
    solved: bool = False


class _Numbered(Environment):  # type: ignore[misc]
    """Base class that tracks the id of the episode and its number of turns.

    Args:
        env: A PettingZoo parallel environment that no other connection uses.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, env: Any) -> None:  # noqa: ANN401  any PettingZoo parallel environment
        super().__init__()
        self._env = env
        self._episode_id: str | None = None
        self._num_steps = 0

    @property
    def state(self) -> State:
        """Id and number of turns of the episode."""
        return State(episode_id=self._episode_id, step_count=self._num_steps)

    def get_metadata(self) -> EnvironmentMetadata:
        """Return the name of the environment."""
        name = str((self._env.metadata or {}).get("name", type(self._env).__name__))
        return EnvironmentMetadata(name=name, description=f"{name} of mlrl")

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def _begin(self, episode_id: str | None) -> None:
        self._episode_id = episode_id or str(uuid.uuid4())
        self._num_steps = 0


class SeatEnvironment(_Numbered):
    """An environment in which the client plays one agent.

    Args:
        env: A PettingZoo parallel environment that no other connection uses.
        agent: The agent; optional if there is only one.
        teammates: Actor of all other agents; required if there are any.
    """

    def __init__(
        self,
        env: Any,  # noqa: ANN401
        agent: AgentID | None = None,
        teammates: Actor | None = None,
    ) -> None:
        super().__init__(env)
        self._seat = Seat(env, agent=agent, teammates=teammates, seed=None)
        self._episode: Episode | None = None

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task_index: int | None = None,
    ) -> TextObservation:
        """Start an episode, and play it until the agent's first turn."""
        (self._episode,) = self._seat.begin([task_index], seed=seed, new_copies=False)
        self._begin(episode_id)
        return self._observation(None)

    def step(self, action: TextAction, timeout_s: float | None = None) -> TextObservation:  # noqa: ARG002
        """Play the agent's turn, and continue until its next one or the end of the episode."""
        if self._episode is None or not self._seat.acts(self._episode):
            raise ConfigError("the episode is over, or has not begun: call reset first")
        before = self._episode.reward
        self._seat.act([self._episode], [action.text])
        self._num_steps += 1
        return self._observation(self._episode.reward - before)

    def _observation(self, reward: float | None) -> TextObservation:
        episode = self._episode
        assert episode is not None  # noqa: S101  for the type checker
        return TextObservation(
            text=episode.observations.get(self._seat.agent, ""),
            task_id=episode.task_id,
            solved=episode.is_solved,
            reward=reward,
            done=not self._seat.acts(episode),
        )


class TeamEnvironment(_Numbered):
    """An environment in which the client plays all agents."""

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task_index: int | None = None,
    ) -> TeamObservation:
        """Start an episode."""
        options = {} if task_index is None else {"options": {"task_index": task_index}}
        observations, infos = self._env.reset(seed=seed, **options)
        self._begin(episode_id)
        return self._observation(observations, infos)

    def step(self, action: TeamAction, timeout_s: float | None = None) -> TeamObservation:  # noqa: ARG002
        """Play one turn."""
        if self._episode_id is None or not self._env.agents:
            raise ConfigError("the episode is over, or has not begun: call reset first")
        observations, rewards, *_, infos = self._env.step(action.actions)
        self._num_steps += 1
        found = self._observation(observations, infos)
        found.rewards = {agent: float(reward) for agent, reward in rewards.items()}
        found.reward = sum(found.rewards.values()) / max(1, len(found.rewards))
        return found

    def _observation(
        self, observations: Mapping[AgentID, str], infos: Mapping[AgentID, Mapping[str, Any]]
    ) -> TeamObservation:
        names = (str(info["task_id"]) for info in infos.values() if "task_id" in info)
        return TeamObservation(
            texts=acting_observations(self._env.agents, observations, infos),
            task_id=next(names, ""),
            solved=any(bool(info.get("solved")) for info in infos.values()),
            done=not self._env.agents,
        )


def openenv_app(
    env_id: str,
    *,
    agent: AgentID | None = None,
    teammates: Callable[[], Actor] | None = None,
    max_sessions: int = 64,
    **env_options: Any,  # noqa: ANN401  the environment checks its options
) -> Any:  # noqa: ANN401  a FastAPI application
    """Return the application of an OpenEnv server.

    Args:
        env_id: A registered environment.
        agent: The agent that clients play; None for the only agent, or for all agents of a team.
        teammates: Returns the actor of the other agents, called once per connection; required if
            `agent` is given and there are other agents.
        max_sessions: Maximum number of simultaneous connections; further ones are refused.
        **env_options: Options of the environment, such as `split`.

    Raises:
        UnknownNameError: If `agent` is not an agent of the environment.
        ConfigError: If `agent` is given without `teammates`.
    """
    made = mlrl_envs.make(env_id, **env_options)

    def factory() -> Environment:
        env = copy.deepcopy(made)
        if agent is None and len(env.possible_agents) > 1:
            return TeamEnvironment(env)
        return SeatEnvironment(env, agent, teammates() if teammates is not None else None)

    is_team = isinstance(factory(), TeamEnvironment)  # report a mistake before the server starts
    kinds = (TeamAction, TeamObservation) if is_team else (TextAction, TextObservation)
    return create_fastapi_app(factory, *kinds, max_concurrent_envs=max_sessions)
