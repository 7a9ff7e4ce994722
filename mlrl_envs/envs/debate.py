"""A debate: `pro` argues for a proposition, `con` against it, at the same time.

In every turn both write one argument; from turn 2 on each has heard what the other said before,
unless `communication="none"`. A debate has no solution: `solved` is always false, and an episode
has exactly `max_turns` turns.

Agents: `pro`, `con`. A reward an agent.
Reward: grounded in (0, 1), by rules or by a language model; paper in (0, 2): an argument's score
    and, in the last turn, the score at the end in addition. `mode="cooperative"` pays each side
    its own score; `mode="zero_sum"` what it is ahead: the two rewards sum to 1 (grounded) or to 0
    (paper, in (-2, 2)). See `mlrl_envs.rewards.debate.score` and `mlrl_envs.rewards.debate.judge`.
Data: 24 propositions of our own writing with key points for both sides, which no agent reads.

Version history:
    v0: first version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.config import DataConfig, check_choice
from mlrl_envs.datasets.debate import load_debate
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.feedback import get_feedback
from mlrl_envs.models.endpoint import Endpoint, as_endpoint
from mlrl_envs.parsing.text import shorten
from mlrl_envs.rewards.debate.judge import score_judged
from mlrl_envs.rewards.debate.score import CON, PRO, DebateRules, score_grounded, score_paper
from mlrl_envs.shell.env import TextParallelEnv, build_env
from mlrl_envs.tasks import DebateTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Turn

__all__ = ["CON", "ENV_ID", "PRO", "DebateConfig", "DebateFamily", "parallel_env"]

ENV_ID = "mlrl/debate-v0"
MAX_QUOTED_CHARS = 2000

_FIRST = """Debate about this proposition: {proposition}

You are {agent}: you argue {side} the proposition. Your opponent, {other}, argues {other_side} it \
at the same time.

Your part: write one argument, a paragraph of three to six plain sentences. Bring one strong \
point, say why it holds, and give an example. Write only the argument."""
_SIDES = {PRO: "for", CON: "against"}
_NEXT = "Give your next argument: bring a new point in new words, in the same form as before."
_NEXT_HEARD = (
    "Give your next argument: answer what {other} said, and bring a new point in new words, in the "
    "same form as before."
)
_OVER = "The episode is over."


@dataclass(frozen=True)
class DebateConfig(DataConfig):
    """Options of the debate family.

    Attributes:
        max_turns: Arguments of each side, at least 1; exactly so many are heard.
        communication: `"broadcast"` lets each side hear what the other said before.
        mode: `"cooperative"` pays each side its own score, `"zero_sum"` what it is ahead.
        judge: `"rules"`, or a language model: an `Endpoint`, or a mapping with `base_url`, `model`
            and other fields of it.
        data_path: A file with propositions of your own; None for ours.
    """

    max_turns: int = 3
    communication: str = "broadcast"
    mode: str = "cooperative"
    judge: str | Endpoint | Mapping[str, Any] = "rules"

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            InvalidArgumentError: If a value is outside its range.
        """
        super().__post_init__()
        check_choice("mode", self.mode, ("cooperative", "zero_sum"))
        if isinstance(self.judge, str):
            check_choice("judge", self.judge, ("rules", "{'base_url': ..., 'model': ...}"))
        else:
            object.__setattr__(self, "judge", as_endpoint(self.judge))
            if self.reward == "paper":
                raise InvalidArgumentError("the published formula has no judge: use judge='rules'")
        get_feedback(self.feedback)


@dataclass(frozen=True)
class DebateFamily:
    """Propositions to debate.

    Attributes:
        config: Options.
        tasks: Every proposition of the split.
    """

    config: DebateConfig
    tasks: tuple[DebateTask, ...]

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`pro` and `con`."""
        return (PRO, CON)

    @property
    def max_turns(self) -> int:
        """Arguments of each side."""
        return self.config.max_turns

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) grounded; by the published formulas (0, 2), zero-sum (-2, 2)."""
        if self.config.reward == "grounded":
            return 0.0, 1.0
        return (-2.0, 2.0) if self.config.mode == "zero_sum" else (0.0, 2.0)

    def observe(self, task: DebateTask, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the proposition and the agent's side; from turn 2 on also the debate so far."""
        first = self._instructions(task, agent)
        if not turns:
            return first
        parts = [first, *self._said(turns, agent)]
        feedback = get_feedback(self.config.feedback)(task, turns, agent)
        if feedback:
            parts.append(f"Feedback on your last argument:\n{feedback}")
        is_over = len(turns) >= self.config.max_turns
        parts.append(_OVER if is_over else self._request(agent))
        return "\n\n".join(parts)

    def score(self, attempts: Sequence[Attempt[DebateTask]], sandbox: ProgramRunner) -> list[Score]:  # noqa: ARG002  runs no programs
        """Score attempts by the formula, by rules, or by a model that is asked for all at once."""
        config = self.config
        is_heard = config.communication == "broadcast"
        rules = DebateRules(config.mode == "zero_sum", config.max_turns, is_heard)
        if config.reward == "paper":
            return [score_paper(attempt, rules) for attempt in attempts]
        told = [
            {agent: self._instructions(attempt.task, agent) for agent in self.agents}
            for attempt in attempts
        ]
        if isinstance(config.judge, Endpoint):
            return score_judged(attempts, rules, told, config.judge)
        return [
            score_grounded(attempt, rules, each)
            for attempt, each in zip(attempts, told, strict=True)
        ]

    def reference(self, task: DebateTask) -> Mapping[AgentID, str] | None:  # noqa: ARG002  no answer key
        """Return None: no argument is the right one."""
        return None

    def _instructions(self, task: DebateTask, agent: AgentID) -> str:
        other = _other(agent)
        return _FIRST.format(
            proposition=task.proposition,
            agent=agent,
            side=_SIDES[agent],
            other=other,
            other_side=_SIDES[other],
        )

    def _said(self, turns: Sequence[Turn], agent: AgentID) -> list[str]:
        said = []
        for number, turn in enumerate(turns, start=1):
            said.append(f"You argued in turn {number}:\n{_quote(turn.actions[agent])}")
            if self.config.communication == "broadcast":
                other = _other(agent)
                said.append(f"{other} argued in turn {number}:\n{_quote(turn.actions[other])}")
        return said

    def _request(self, agent: AgentID) -> str:
        is_heard = self.config.communication == "broadcast"
        return _NEXT_HEARD.format(other=_other(agent)) if is_heard else _NEXT


def parallel_env(**options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Build the environment; options are those of `DebateConfig`, and of the shell."""
    return build_env(ENV_ID, DebateConfig, _family, options)


def _family(config: DebateConfig) -> DebateFamily:
    return DebateFamily(config, load_debate(config.split, config.path))


def _other(agent: AgentID) -> AgentID:
    return CON if agent == PRO else PRO


def _quote(text: str) -> str:
    return shorten(text.strip(), MAX_QUOTED_CHARS) or "(nothing)"
