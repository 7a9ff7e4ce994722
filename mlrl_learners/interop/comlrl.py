"""A team's environment for comlrl's trainers: data set, formatters, reward and transition.

    view = TeamView("mlrl/story-v0", tokenizer=tokenizer, max_turns=2)
    MAGRPOTrainer(agents=[...], tokenizer=..., args=config, **view.arguments()).train()

comlrl walks a tree depth first: it formats a node's prompts, asks for the reward of each joint
action there, and for each of them asks what agents read next. The view follows it through copies
of the environment, one a joint action, so that nothing is scored twice. Its trainers know one
reward a joint action: here the mean over agents.

Made for comlrl 1.4.3, trainers of at least two agents. Not covered: two trainers on one view.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.means import mean
from mlrl_learners.interop.tasks import as_dataset, make_counted
from mlrl_learners.types import AgentID

__all__ = ["TeamView"]

JointActions = tuple[tuple[str, ...], ...]
"""Which joint actions led here, one a turn; in each a text an agent."""
_State = tuple[Any, Mapping[AgentID, str]]
"""An environment, and what its agents read there."""


class TeamView:
    """An environment as comlrl's callbacks.

    Args:
        env_id: A registered environment of at least two agents.
        tokenizer: Its chat template wraps what agents read; None, or one without a template, for
            the bare text.
        seed: Of every episode.
        **env_options: Of the environment, such as `split` and `max_turns`.

    Attributes:
        agents: Roles, in the order of the trainer's agents.

    Raises:
        ConfigError: If it has a single agent, or its tasks are not counted.
    """

    def __init__(
        self,
        env_id: str,
        *,
        tokenizer: Any = None,  # noqa: ANN401 - transformers ships no types
        seed: int = 0,
        **env_options: Any,  # noqa: ANN401 - the environment checks its options
    ) -> None:
        self._env = make_counted(env_id, env_options)
        self.agents: tuple[AgentID, ...] = tuple(self._env.possible_agents)
        if len(self.agents) < 2:
            raise ConfigError(f"{env_id} has one agent; mlrl_learners.interop.trl is for those")
        self._tokenizer, self._seed = tokenizer, seed
        self._nodes: dict[JointActions, _State] = {}
        self._here: JointActions = ()

    def arguments(self) -> dict[str, Any]:
        """Return what a trainer is made with, apart from models, tokenizers and configuration."""
        return {
            "num_agents": len(self.agents),
            "train_dataset": self.dataset(),
            "formatters": self.formatters,
            "reward_func": self.reward,
            "external_transition": self.transition,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row a task: `task_index`, and as `prompt` what all agents read."""
        env = copy.deepcopy(self._env)
        rows = []
        for index in range(env.num_tasks):
            env.reset(seed=self._seed, options={"task_index": index})
            rows.append({"task_index": index, "prompt": env.state()})
        return rows

    def dataset(self) -> Any:  # noqa: ANN401 - datasets has no types
        """Return the rows as a `datasets.Dataset`.

        Raises:
            ConfigError: If that package is not installed.
        """
        return as_dataset(self.rows())

    @property
    def formatters(self) -> list[Callable[..., str]]:
        """For each agent, from a row, or from what it reads next, to its prompt."""
        return [partial(self._format, number) for number in range(len(self.agents))]

    def reward(self, *completions: Sequence[str]) -> list[float]:
        """Return the team's reward for joint actions at the node that was formatted last.

        Args:
            *completions: For each agent its texts; those of one position are played together.

        Raises:
            InfraError: If the environment's machinery fails.
        """
        return [self._play(joint) for joint in zip(*completions, strict=True)]

    def transition(
        self,
        *,
        response_history_per_agent: Sequence[Sequence[str]],
        **_: object,
    ) -> list[str]:
        """Return the prompts of the next turn, and go there.

        Args:
            response_history_per_agent: For each agent, what it wrote in the turns so far.

        Raises:
            ConfigError: If these joint actions were not scored before.
        """
        here = tuple(zip(*response_history_per_agent, strict=True))
        if here not in self._nodes:
            raise ConfigError("the trainer asked what follows joint actions that it did not score")
        self._here = here
        observations = self._nodes[here][1]
        return [self._chat(observations[agent]) for agent in self.agents]

    def _format(
        self, number: int, item: Mapping[str, Any], external_prompts: str | None = None
    ) -> str:
        if external_prompts is not None:  # what `transition` returned
            return external_prompts
        root = self._begin(item["task_index"])
        # An evaluation asks for the first agent's first prompt in the middle of an episode, too:
        # only the last agent's says that one begins.
        if number == len(self.agents) - 1:
            self._nodes, self._here = {(): root}, ()
        return self._chat(root[1][self.agents[number]])

    def _begin(self, index: int) -> _State:
        env = copy.deepcopy(self._env)
        observations, _ = env.reset(seed=self._seed, options={"task_index": int(index)})
        return env, observations

    def _play(self, joint: tuple[str, ...]) -> float:
        if self._here not in self._nodes:
            raise ConfigError("the trainer asked for rewards before it formatted any prompt")
        env, observations = self._nodes[self._here]
        earned = [0.0]  # where the task ended before the trainer's last turn
        if env.agents:
            env = copy.deepcopy(env)
            texts = dict(zip(self.agents, joint, strict=True))
            following, rewards, *_ = env.step({agent: texts[agent] for agent in env.agents})
            observations = {**observations, **following}
            earned = [float(reward) for reward in rewards.values()]
        self._nodes[(*self._here, joint)] = env, observations
        return mean(earned)

    def _chat(self, text: str) -> str:
        if getattr(self._tokenizer, "chat_template", None) is None:
            return text
        prompt: str = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
        )
        return prompt
