"""Own rewards and prompts over the family of any environment.

A wrapped family plays the same tasks. Its rewards are a function of the task and the actions, the
weighted components of the environment, or both, through a chain of processors; what agents read
may go through a template or a function of each agent.
"""

import math
import numbers
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
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Task, TaskFamily, Turn

__all__ = ["CustomFamily", "CustomScore", "customized"]

PROCESSED = "processed"
OF_GAMES = ("payoff", "illegal")
OF_STEPS = {"mlrl/coder-tester-v1": ("loaded", "tests", "valid", "kills")}
"""Components of environments in which a step has some of them only; games have `OF_GAMES`."""
BASE_VALUES = ("config", "expert", "competitive", "game")
BASE_METHODS = (*OPTIONAL_METHODS, "legal_actions", "scripted_action", "figures")
"""Methods of the wrapped family, whose arguments begin with a task and turns."""
_Parts = Mapping[str, float]


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
        return self._formatted(self.family.observe(task, _base(turns), agent), agent)

    def _formatted(self, text: str, agent: AgentID) -> str:
        formatter = dict(self.rules.formatters).get(agent)
        if formatter is None:
            return text
        if isinstance(formatter, str):
            return formatter.format_map({"task": text, "agent": agent})
        try:
            formatted = formatter(text, agent)
        except Exception as error:
            raise ContractError(f"the formatter of {agent!r} fails: {error!r}") from error
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
        if name in BASE_VALUES:
            return getattr(self.family, name)
        if name == "prompt":  # of a game, in a state instead of after turns
            prompt = self.family.prompt  # type: ignore[attr-defined]
            return lambda state, agent: self._formatted(prompt(state, agent), agent)
        if name not in BASE_METHODS:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        rule = getattr(self.family, name)
        if name == "deal":
            return rule
        return lambda task, turns, *more, **options: rule(task, _base(turns), *more, **options)

    def _score(self, attempt: Attempt[Any], score: Score) -> CustomScore:
        weights = dict(self.rules.weights)
        own = [self._own(name, reward, attempt) for name, reward in self.rules.functions]
        told = dict.fromkeys([*score.components, *(agent for each in own for agent in each)])
        self._check_names(score, own)
        components = {}
        for agent in told:
            parts = self._kept(score.components.get(agent, {}))
            for (reward, _), each in zip(self.rules.functions, own, strict=True):
                _add(parts, each.get(agent, {}), reward)
            components[agent] = self._processed(
                {name: weights.get(name, 1.0) * value for name, value in parts.items()}
            )
        return CustomScore(components, score.solved, score.diagnostics, base=score)

    def _kept(self, components: Mapping[str, float]) -> dict[str, float]:
        """Return the components of the environment that count."""
        names = self.rules.kept
        return {name: v for name, v in components.items() if names is None or name in names}

    def _check_names(self, score: Score, own: Sequence[Mapping[AgentID, _Parts]]) -> None:
        """Raise for a component that does not exist, where all agents act and all are told."""
        if hasattr(self.family, "acting"):  # not every step has every component: see `_checked`
            return
        known = {name for parts in score.components.values() for name in parts}
        for name in self.rules.kept or ():
            if name not in known:
                raise unknown_name("component of reward", name, known)
        known |= {name for each in own for parts in each.values() for name in parts}
        for name, _ in self.rules.weights:
            if name not in known:
                raise unknown_name("component of reward_weights", name, known)

    def _processed(self, parts: Mapping[str, float]) -> dict[str, float]:
        """Return the parts, and what the processors add to their sum."""
        total = math.fsum(parts.values())
        low, high = self.rules.bounds or self.family.reward_range
        if not low - 1e-9 <= total <= high + 1e-9:
            raise ContractError(
                f"the reward {total} is outside ({low}, {high}): pass reward_range=(low, high)"
            )
        whole = dict(parts)
        if self.rules.chain:
            change = process(self.rules.chain, total) - total
            _add(whole, {PROCESSED: change}, "reward_processors")
        return whole

    def _own(self, name: str, reward: Reward, attempt: Attempt[Any]) -> dict[AgentID, _Parts]:
        """Return the components of an own reward for each agent."""
        try:
            found = reward(attempt.task, dict(attempt.actions))
        except Exception as error:
            raise ContractError(
                f"reward {name!r} fails on task {attempt.task.task_id!r}: {error!r}"
            ) from error
        values: Mapping[AgentID, Any] = (
            found if isinstance(found, Mapping) else dict.fromkeys(self.agents, found)
        )
        for agent in values:
            if agent not in self.agents:
                raise unknown_name(f"agent of reward {name!r}", agent, self.agents)
        return {
            agent: {
                str(part): _number(f"reward {name!r} of {agent}", each)
                for part, each in (given if isinstance(given, Mapping) else {name: given}).items()
            }
            for agent, given in values.items()
        }


def customized(env: Any, options: Mapping[str, Any]) -> TextParallelEnv:  # noqa: ANN401  any environment
    """Return an environment with own rewards and prompts.

    Args:
        env: The environment.
        options: `reward`: a function of the task and the actions, `"module:function"` or
            `"file.py:function"`, which returns a number for all agents, or a mapping of agents to
            numbers or to components by name; or a list of functions and of components of the
            environment, whose sum is the reward;
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
    family = CustomFamily(env.family, _checked(rules_of(options, env.possible_agents), env.family))
    # The environment of a game has methods that its family answers; other subclasses may need more.
    made = (type(env) if hasattr(env.family, "game") else TextParallelEnv)(
        family, env_id=env.metadata["name"], sandbox=env.sandbox, render_mode=env.render_mode
    )
    made.metadata = {**env.metadata, **made.metadata}
    return made


def _checked(rules: Rules, family: TaskFamily[Any]) -> Rules:
    """Return the rules of a family in which a step has some of its components only.

    Raises:
        UnknownNameError: If a component does not exist; functions may return further ones.
    """
    of_steps = OF_STEPS.get(getattr(family, "env_id", ""), ())
    known = OF_GAMES if hasattr(family, "game") else of_steps
    if not known:
        return rules
    for name in rules.kept or ():
        if name not in known:
            raise unknown_name("component of reward", name, known)
    for name, _ in () if rules.functions else rules.weights:
        if name not in known:
            raise unknown_name("component of reward_weights", name, known)
    return rules


def _add(parts: dict[str, float], more: _Parts, reward: str) -> None:
    """Add the components of a reward to those of others."""
    for name, value in more.items():
        if name in parts:
            raise ContractError(
                f"reward {reward!r} has the component {name!r}, as another reward has: rename it"
            )
        parts[name] = value


def _number(name: str, value: Any) -> float:  # noqa: ANN401  what a function returns
    """Return a number; NumPy's are taken as well."""
    found = (
        value if isinstance(value, bool) or not isinstance(value, numbers.Real) else float(value)
    )
    check_number(name, found)
    return float(found)


def _base(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns with the scores of the wrapped family."""
    return tuple(
        Turn(turn.actions, turn.score.base)
        if isinstance(turn.score, CustomScore) and turn.score.base is not None
        else turn
        for turn in turns
    )
