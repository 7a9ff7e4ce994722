"""Single-agent view of an environment for TRL's `GRPOTrainer`: a data set and a reward function.

    view = SingleAgentView("mlrl/humaneval-v1", num_aux=0)
    GRPOTrainer(model, reward_funcs=view.reward, train_dataset=view.dataset(), args=config).train()

A completion is the agent's first turn of an episode, before which its teammates may act. Its reward
includes what arrives while the agent waits after it. Not covered: later turns, and several learning
agents; see `mlrl_learners.interop.comlrl` and the learners of this package.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mlrl_envs
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.interop.tasks import as_dataset, make_counted
from mlrl_learners.play.steps import acting_observations
from mlrl_learners.types import Actor, AgentID, Spectator

__all__ = ["SingleAgentView"]

Message = Mapping[str, Any]


class SingleAgentView:
    """Prompts and rewards of one agent; other agents are played by a fixed actor.

    Args:
        env_id: A registered environment.
        agent: The learning agent; optional if there is only one.
        teammates: Actor of all other agents; required if there are any.
        seed: Seed of every episode.
        **env_options: Options of the environment, such as `split`.

    Attributes:
        agent: The learning agent.

    Raises:
        UnknownNameError: If `agent` is not an agent of the environment.
        ConfigError: If there are several agents and `agent` or `teammates` is missing, or the
            environment has no `num_tasks`.
    """

    def __init__(
        self,
        env_id: str,
        *,
        agent: AgentID | None = None,
        teammates: Actor | None = None,
        seed: int = 0,
        **env_options: Any,  # noqa: ANN401 - the environment checks its options
    ) -> None:
        self._env = make_counted(env_id, env_options)
        agents: list[AgentID] = self._env.possible_agents
        if agent is not None and agent not in agents:
            raise unknown_name("agent", agent, agents)
        if len(agents) > 1 and (agent is None or teammates is None):
            raise ConfigError(
                f"{env_id} has the agents {', '.join(agents)}: say which one learns (agent=...) "
                "and which actor plays the others (teammates=...)"
            )
        self.agent: AgentID = agent or agents[0]
        self._teammates, self._seed = teammates, seed

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per task: `prompt`, a single user message, and `task_index`."""
        env = copy.deepcopy(self._env)
        rows = []
        for index in range(env.num_tasks):
            (played,) = self._begin([env], [index])
            content = played.observations[self.agent]
            rows.append({"prompt": [{"role": "user", "content": content}], "task_index": index})
        return rows

    def dataset(self) -> Any:  # noqa: ANN401 - datasets has no types
        """Return the rows as a `datasets.Dataset`.

        Raises:
            ConfigError: If `datasets` is not installed.
        """
        return as_dataset(self.rows())

    def reward(
        self,
        prompts: Sequence[object],  # noqa: ARG002 - what TRL passes by name
        completions: Sequence[str | Sequence[Message]],
        task_index: Sequence[int],
        **_: object,
    ) -> list[float]:
        """Return the reward of each completion; all of them are scored as one batch.

        Args:
            prompts: Prompts of the rows; ignored.
            completions: Texts, or conversations that end with the answer.
            task_index: Task of each completion.

        Raises:
            InfraError: If infrastructure fails.
            ConfigError: If a task ends before the agent acts.
        """
        played = self._begin([copy.deepcopy(self._env) for _ in task_index], task_index)
        own = [{self.agent: _text(completion)} for completion in completions]
        for each in played:
            each.reward = 0.0
        self._step(played, own)
        self._wait(played)
        return [each.reward for each in played]

    def _begin(self, envs: Sequence[Any], indices: Sequence[int]) -> list["_Played"]:
        """Reset environments, and play them until the agent acts."""
        played = []
        for env, index in zip(envs, indices, strict=True):
            observations, infos = env.reset(seed=self._seed, options={"task_index": int(index)})
            played.append(_Played(env, acting_observations(env.agents, observations, infos)))
        self._wait(played)
        for index, each in zip(indices, played, strict=True):
            if self.agent not in each.observations:
                raise ConfigError(f"task {index} ended before {self.agent!r} acted")
        return played

    def _wait(self, played: Sequence["_Played"]) -> None:
        """Let the teammates play while the agent waits."""
        while waiting := [
            each
            for each in played
            if self.agent in each.env.agents and self.agent not in each.observations
        ]:
            self._step(waiting, [{} for _ in waiting])

    def _step(self, played: Sequence["_Played"], own: Sequence[Mapping[AgentID, str]]) -> None:
        """Play one turn of many episodes as one batch, with the teammates' answers."""
        envs = [each.env for each in played]
        actions = [{**o, **a} for o, a in zip(self._others(played), own, strict=True)]
        for each, result in zip(played, mlrl_envs.step_many(envs, actions), strict=True):
            each.reward += float(result[1].get(self.agent, 0.0))
            each.observations = acting_observations(each.env.agents, result[0], result[-1])

    def _others(self, played: Sequence["_Played"]) -> list[dict[AgentID, str]]:
        """Return the answers of the teammates that act."""
        if self._teammates is None:
            return [{} for _ in played]
        if isinstance(self._teammates, Spectator):
            self._teammates.watch([each.env for each in played])
        asked = [
            {a: text for a, text in each.observations.items() if a != self.agent} for each in played
        ]
        answers = self._teammates.act(asked, num_samples=1)
        return [{a: group[0].text for a, group in answer.items()} for answer in answers]


@dataclass
class _Played:
    """An episode on its way.

    Attributes:
        env: Its environment.
        observations: Observations of the agents that act next.
        reward: What the learning agent has earned.
    """

    env: Any
    observations: Mapping[AgentID, str]
    reward: float = 0.0


def _text(completion: str | Sequence[Message]) -> str:
    return completion if isinstance(completion, str) else str(completion[-1]["content"] or "")
