"""Single-agent view of an environment for TRL's `GRPOTrainer`: a data set and a reward function.

    view = SingleAgentView("mlrl/humaneval-v1", num_aux=0)
    GRPOTrainer(model, reward_funcs=view.reward, train_dataset=view.dataset(), args=config).train()

A completion is the first turn of an episode. Not covered: later turns, and several learning agents;
see `mlrl_learners.interop.comlrl` and the learners of this package.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import mlrl_envs
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.interop.tasks import as_dataset, make_counted
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
        return [
            {
                "prompt": [{"role": "user", "content": self._begin(env, index)[self.agent]}],
                "task_index": index,
            }
            for index in range(env.num_tasks)
        ]

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
        """
        envs = [copy.deepcopy(self._env) for _ in task_index]
        read = [self._begin(env, index) for env, index in zip(envs, task_index, strict=True)]
        actions = [
            {**others, self.agent: _text(completion)}
            for others, completion in zip(self._others(envs, read), completions, strict=True)
        ]
        return [float(step[1][self.agent]) for step in mlrl_envs.step_many(envs, actions)]

    def _begin(self, env: Any, index: int) -> Mapping[AgentID, str]:  # noqa: ANN401
        observations: Mapping[AgentID, str] = env.reset(
            seed=self._seed, options={"task_index": int(index)}
        )[0]
        return observations

    def _others(
        self, envs: Sequence[Any], read: Sequence[Mapping[AgentID, str]]
    ) -> list[dict[AgentID, str]]:
        """Return the answers of the teammates."""
        if self._teammates is None:
            return [{} for _ in envs]
        if isinstance(self._teammates, Spectator):
            self._teammates.watch(envs)
        asked = [{a: text for a, text in each.items() if a != self.agent} for each in read]
        answers = self._teammates.act(asked, num_samples=1)
        return [{a: group[0].text for a, group in answer.items()} for answer in answers]


def _text(completion: str | Sequence[Message]) -> str:
    return completion if isinstance(completion, str) else str(completion[-1]["content"] or "")
