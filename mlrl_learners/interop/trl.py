"""Single-agent view of an environment for TRL's `GRPOTrainer`.

One turn, with a data set and a reward function:

    view = SingleAgentView("mlrl/humaneval-v1", num_aux=0)
    GRPOTrainer(model, reward_funcs=view.reward, train_dataset=view.dataset(), args=config).train()

Several turns, which the model plays by calling the tool `answer`:

    view = SingleAgentView("mlrl/humaneval-v1", num_aux=0, max_turns=2)
    GRPOTrainer(
        model, environment_factory=view.environment, train_dataset=view.dataset(), args=config
    ).train()

Other agents are played by a fixed actor. What they play before the agent's first turn is drawn once
for each task, so that a completion is scored at the position that its prompt shows. The reward of a
turn includes rewards that the agent receives while it waits after the turn. Not covered: several
learning agents; see `mlrl_learners.interop.comlrl` and the learners of this package.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.interop.seat import Episode, Seat
from mlrl_learners.interop.tasks import as_dataset, make_counted
from mlrl_learners.types import Actor, AgentID

__all__ = ["SingleAgentView", "ToolEnvironment"]

Message = Mapping[str, Any]
OVER = "The episode is over."


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
        env = make_counted(env_id, env_options)
        self._num_tasks = int(env.num_tasks)
        self._seat = Seat(env, agent=agent, teammates=teammates, seed=seed)
        self.agent: AgentID = self._seat.agent

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per task: `prompt`, a single user message, and `task_index`."""
        rows = []
        for index in range(self._num_tasks):
            (episode,) = self._seat.begin([index])
            content = episode.observations[self.agent]
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
        prompts: Sequence[object],
        completions: Sequence[str | Sequence[Message]],
        task_index: Sequence[int],
        **_: object,
    ) -> list[float]:
        """Return the reward of each completion; completions are the agent's first turn.

        All completions are scored as one batch.

        Args:
            prompts: Prompts of the rows. Conversations may have more text and messages than the
                rows had; plain texts are not read.
            completions: Texts, or conversations that end with the answer.
            task_index: Task of each completion.

        Raises:
            InfraError: If infrastructure fails.
            ConfigError: If a task ends before the agent acts, or a prompt shows another position.
            ContractError: If the teammates do not answer what they are asked.
        """
        episodes = self._seat.begin(task_index)
        for prompt, index, episode in zip(prompts, task_index, episodes, strict=False):
            _check_position(prompt, episode.observations[self.agent], index)
        self._seat.act(episodes, [_text(completion) for completion in completions])
        return [episode.reward for episode in episodes]

    def environment(self) -> "ToolEnvironment":
        """Return an environment for TRL's `environment_factory`."""
        return ToolEnvironment(self._seat)


class ToolEnvironment:
    """Environment that a model plays by tool calls, with the method names that TRL expects.

    TRL returns errors of a tool to the model as text; `get_reward` raises them again, so that a
    failure of infrastructure ends training.

    Args:
        seat: The agent that the model plays.
    """

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._episode: Episode | None = None
        self._error: Exception | None = None

    def reset(self, task_index: int, prompt: object = (), **_: object) -> None:
        """Begin the episode of a row, whose prompt holds the first observation.

        Args:
            task_index: Task of the row.
            prompt: Prompt of the row, as in `SingleAgentView.reward`.
            **_: Other fields of the row.

        Raises:
            ConfigError: If the prompt shows another position than that of the episode.
        """
        self._error = None
        (self._episode,) = self._seat.begin([task_index])
        _check_position(prompt, self._episode.observations[self._seat.agent], task_index)

    def answer(self, text: str) -> str:
        """Give your answer to the last observation, and read the next observation.

        Args:
            text: The whole answer.

        Returns:
            The next observation, or that the episode is over.
        """
        episode = self._begun()
        if not self._seat.acts(episode):
            return OVER
        try:
            self._seat.act([episode], [str(text)])
        except Exception as error:
            self._error = error
            raise
        return episode.observations[self._seat.agent] if self._seat.acts(episode) else OVER

    def get_reward(self) -> float:
        """Return what the agent has earned; a model that never answered gave an empty answer."""
        if self._error is not None:
            raise self._error
        episode = self._begun()
        if not episode.num_steps:
            self._seat.act([episode], [""])
        return episode.reward

    def _begun(self) -> Episode:
        if self._episode is None:
            raise RuntimeError("reset must be called first")
        return self._episode


def _text(completion: str | Sequence[Message]) -> str:
    return completion if isinstance(completion, str) else str(completion[-1].get("content") or "")


def _check_position(prompt: object, observation: str, task_index: int) -> None:
    """Check that a conversation contains the observation that is answered.

    Raises:
        ConfigError: If it does not.
    """
    if isinstance(prompt, str) or not isinstance(prompt, Sequence) or not prompt:
        return
    if not any(observation in _read(message.get("content")) for message in prompt):
        raise ConfigError(
            f"the prompt of task {task_index} shows another position than the one that is scored: "
            "make the rows anew with this view"
        )


def _read(content: str | Sequence[Mapping[str, Any]] | None) -> str:
    """Return the text of a message, which may have several parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or ())
