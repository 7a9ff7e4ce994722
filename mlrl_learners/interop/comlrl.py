"""Multi-agent environments for comlrl's trainers: data set, formatters, reward and transition.

    view = TeamView("mlrl/story-v1", tokenizer=tokenizer, max_turns=2)
    MAGRPOTrainer(agents=[...], tokenizer=..., args=config, **view.arguments()).train()

comlrl traverses a tree depth first: it formats the prompts of a node, requests the reward of each
of its joint actions, and then requests the next observations for each of them. The view keeps one
copy of the environment per joint action, so that no joint action is scored twice. comlrl takes one
reward per joint action; the view returns the mean over agents.

Written for comlrl 1.4.3; requires at least two agents. Not covered: two trainers that share a view,
and agents that take turns, because the trainers ask every agent in every turn.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.means import mean
from mlrl_learners.interop.tasks import as_dataset, make_counted
from mlrl_learners.play.steps import acting_observations
from mlrl_learners.types import AgentID

__all__ = ["TeamView"]

JointActions = tuple[tuple[str, ...], ...]
"""Joint actions that lead to a node, one per turn; each has one text per agent."""
_State = tuple[Any, Mapping[AgentID, str]]
"""An environment at a node, and the observations of its agents."""


class TeamView:
    """Callbacks of comlrl's trainers for an environment.

    Args:
        env_id: A registered environment of at least two agents.
        tokenizer: Tokenizer whose chat template is applied to observations; without a tokenizer or
            a template they are passed unchanged.
        seed: Seed of every episode.
        **env_options: Options of the environment, such as `split` and `max_turns`.

    Attributes:
        agents: Agent ids, in the order of the trainer's agents.

    Raises:
        ConfigError: If the environment has a single agent, or no `num_tasks`. Methods raise it if
            an agent does not act in a turn.
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
        """Return the arguments of a trainer apart from models, tokenizer and configuration."""
        return {
            "num_agents": len(self.agents),
            "train_dataset": self.dataset(),
            "formatters": self.formatters,
            "reward_func": self.reward,
            "external_transition": self.transition,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per task: `task_index`, and the observations of all agents as `prompt`."""
        env = copy.deepcopy(self._env)
        rows = []
        for index in range(env.num_tasks):
            env.reset(seed=self._seed, options={"task_index": index})
            rows.append({"task_index": index, "prompt": env.state()})
        return rows

    def dataset(self) -> Any:  # noqa: ANN401 - datasets has no types
        """Return the rows as a `datasets.Dataset`.

        Raises:
            ConfigError: If `datasets` is not installed.
        """
        return as_dataset(self.rows())

    @property
    def formatters(self) -> list[Callable[..., str]]:
        """For each agent, a function from a row or a next observation to its prompt."""
        return [partial(self._format, number) for number in range(len(self.agents))]

    def reward(self, *completions: Sequence[str]) -> list[float]:
        """Return the team reward of joint actions at the node that was formatted last.

        Args:
            *completions: For each agent its texts; texts at the same position are one joint action.

        Raises:
            InfraError: If infrastructure fails.
        """
        return [self._play(joint) for joint in zip(*completions, strict=True)]

    def transition(
        self,
        *,
        response_history_per_agent: Sequence[Sequence[str]],
        **_: object,
    ) -> list[str]:
        """Move to the next turn and return its prompts.

        Args:
            response_history_per_agent: For each agent, its texts of the turns so far.

        Raises:
            ConfigError: If these joint actions have not been scored.
        """
        here = tuple(zip(*response_history_per_agent, strict=True))
        if here not in self._nodes:
            raise ConfigError(
                "the trainer requested a transition for joint actions that it did not score"
            )
        self._here = here
        observations = self._nodes[here][1]
        return [self._chat(observations[agent]) for agent in self.agents]

    def _format(
        self, number: int, item: Mapping[str, Any], external_prompts: str | None = None
    ) -> str:
        if external_prompts is not None:  # returned by `transition`
            return external_prompts
        root = self._begin(item["task_index"])
        # comlrl's evaluation also requests the first agent's first prompt in the middle of an
        # episode, so only the last agent's request starts a new episode.
        if number == len(self.agents) - 1:
            self._nodes, self._here = {(): root}, ()
        return self._chat(root[1][self.agents[number]])

    def _begin(self, index: int) -> _State:
        env = copy.deepcopy(self._env)
        observations, infos = env.reset(seed=self._seed, options={"task_index": int(index)})
        self._check_all_act(env, observations, infos)
        return env, observations

    def _play(self, joint: tuple[str, ...]) -> float:
        if self._here not in self._nodes:
            raise ConfigError("the trainer requested rewards before it formatted a prompt")
        env, observations = self._nodes[self._here]
        earned = [0.0]  # reward if the episode ended before the trainer's last turn
        if env.agents:
            env = copy.deepcopy(env)
            texts = dict(zip(self.agents, joint, strict=True))
            following, rewards, *_, infos = env.step({agent: texts[agent] for agent in env.agents})
            self._check_all_act(env, following, infos)
            observations = {**observations, **following}
            earned = [float(reward) for reward in rewards.values()]
        self._nodes[(*self._here, joint)] = env, observations
        return mean(earned)

    def _check_all_act(
        self,
        env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
        observations: Mapping[AgentID, str],
        infos: Mapping[AgentID, Any],
    ) -> None:
        acting = acting_observations(env.agents, observations, infos)
        waiting = [agent for agent in env.agents if agent not in acting]
        if waiting:
            raise ConfigError(
                f"comlrl asks every agent in every turn, and {', '.join(waiting)} must wait here: "
                "train with the learners of this package"
            )

    def _chat(self, text: str) -> str:
        if getattr(self._tokenizer, "chat_template", None) is None:
            return text
        prompt: str = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
        )
        return prompt
