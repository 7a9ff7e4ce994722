"""Own rewards and prompts over the family of any environment.

A wrapped family plays the same tasks. Its rewards are a function of the task and the actions, the
weighted components of the environment, or both, through a chain of processors; what agents read
may go through a template or a function of each agent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.config import check_number
from mlrl_envs.errors import ContractError, InvalidArgumentError, unknown_name
from mlrl_envs.shell.custom_options import Reward, Rules, rules_of
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.shell.processors import process, process_range
from mlrl_envs.shell.roster import OPTIONAL_METHODS
from mlrl_envs.shell.wrapped import WrappedFamily
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Task, Turn

__all__ = ["CustomFamily", "CustomScore", "customized"]

PROCESSED = "processed"


@dataclass(frozen=True, slots=True)
class CustomScore(Score):
    """A score with an own reward.

    Attributes:
        base: The score of the wrapped family.
    """

    base: Score | None = None


@dataclass(frozen=True)
class CustomFamily(WrappedFamily):
    """A family with own rewards and prompts.

    Attributes:
        family: The wrapped family.
        rules: What is changed.
    """

    rules: Rules

    @property
    def reward_range(self) -> tuple[float, float]:
        """Lowest and highest reward of one turn after the processors."""
        return process_range(self.rules.chain, self.rules.bounds or self.family.reward_range)

    def observe(self, task: Task, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the observation of the wrapped family through the agent's formatter."""
        text = self.family.observe(task, _base(turns), agent)
        formatter = dict(self.rules.formatters).get(agent)
        if formatter is None:
            return text
        if isinstance(formatter, str):
            return formatter.format_map({"task": text, "agent": agent})
        formatted = formatter(text, agent)
        if not isinstance(formatted, str):
            raise ContractError(f"the formatter of {agent!r} must return a str, got {formatted!r}")
        return formatted

    def score(self, attempts: Sequence[Attempt[Any]], sandbox: ProgramRunner) -> list[Score]:
        """Score attempts with the wrapped family and the own rewards.

        Raises:
            ContractError: If an own reward fails, or is not a finite number in its range.
            InfraError: If the sandbox or a request to a model fails.
        """
        asked = [Attempt(each.task, _base(each.turns), each.actions) for each in attempts]
        scores = self.family.score(asked, sandbox)
        return [self._score(*pair) for pair in zip(asked, scores, strict=True)]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  a method or a value
        if name in ("config", "expert", "competitive"):
            return getattr(self.family, name)
        if name not in OPTIONAL_METHODS:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        rule = getattr(self.family, name)
        return rule if name == "deal" else lambda task, turns: rule(task, _base(turns))

    def _score(self, attempt: Attempt[Any], score: Score) -> CustomScore:
        weights = dict(self.rules.weights)
        own = [(name, self._own(name, reward, attempt)) for name, reward in self.rules.functions]
        told = dict.fromkeys([*score.components, *(a for _, parts in own for a in parts)])
        components = {}
        for agent in told:
            kept = score.components.get(agent, {}) if self.rules.keeps else {}
            parts = {**kept, **{name: each[agent] for name, each in own if agent in each}}
            components[agent] = self._processed(
                {name: weights.get(name, 1.0) * value for name, value in parts.items()}
            )
        return CustomScore(components, score.solved, score.diagnostics, base=score)

    def _processed(self, parts: Mapping[str, float]) -> dict[str, float]:
        """Return the parts, and what the processors add to their sum."""
        total = math.fsum(parts.values())
        low, high = self.rules.bounds or self.family.reward_range
        if not low - 1e-9 <= total <= high + 1e-9:
            raise ContractError(
                f"the reward {total} is outside ({low}, {high}): pass reward_range=(low, high)"
            )
        if not self.rules.chain:
            return dict(parts)
        return {**parts, PROCESSED: process(self.rules.chain, total) - total}

    def _own(self, name: str, reward: Reward, attempt: Attempt[Any]) -> dict[AgentID, float]:
        """Return the own reward of each agent."""
        try:
            found = reward(attempt.task, dict(attempt.actions))
        except Exception as error:
            raise ContractError(
                f"reward {name!r} fails on task {attempt.task.task_id!r}: {error!r}"
            ) from error
        values: Mapping[AgentID, Any] = (
            found if isinstance(found, Mapping) else dict.fromkeys(self.agents, found)
        )
        for agent, value in values.items():
            if agent not in self.agents:
                raise unknown_name(f"agent of reward {name!r}", agent, self.agents)
            check_number(f"reward {name!r} of {agent}", value)
        return {agent: float(value) for agent, value in values.items()}


def customized(env: Any, options: Mapping[str, Any]) -> TextParallelEnv:  # noqa: ANN401  any environment
    """Return an environment with own rewards and prompts.

    Args:
        env: The environment.
        options: `reward`: a function of the task and the actions, or `"module:function"`, which
            returns a number for all agents or a mapping of agents to numbers;
            `reward_weights`: weights of components, and of further functions `"module:function"`;
            `reward_processors`: see `mlrl_envs.shell.processors`; `reward_range`: lowest and
            highest reward before the processors; `formatters`: for an agent a template with
            `{task}` and `{agent}`, or a function of both.

    Raises:
        UnknownNameError: If there is no such agent, processor or field.
        InvalidArgumentError: If a value has the wrong type, or a function cannot be imported.
    """
    if not isinstance(env, TextParallelEnv):
        raise InvalidArgumentError(f"{', '.join(options)}: needs a TextParallelEnv, got {env!r}")
    family = CustomFamily(env.family, rules_of(options, env.possible_agents))
    made = TextParallelEnv(
        family, env_id=env.metadata["name"], sandbox=env.sandbox, render_mode=env.render_mode
    )
    made.metadata = {**env.metadata, **made.metadata}
    return made


def _base(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns with the scores of the wrapped family."""
    return tuple(
        Turn(turn.actions, turn.score.base)
        if isinstance(turn.score, CustomScore) and turn.score.base is not None
        else turn
        for turn in turns
    )
