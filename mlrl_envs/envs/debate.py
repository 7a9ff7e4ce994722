"""A debate: `pro` argues for a proposition and `con` against it, at the same time.

In every turn both agents write one argument; from turn 2 on each has read what the other argued
before. There is no right answer: `solved` is always false, and an episode has exactly `max_turns`
turns.

Agents:
    `pro` and `con`. Each has its own reward.

Observation:
    The proposition, the agent's side and the form of an argument. From turn 2 on also all arguments
    so far, those of the opponent left out with `communication="none"`, and the feedback.

Action:
    One argument, a paragraph of three to six sentences.

Reward:
    Each agent has its own reward. `mode="zero_sum"` pays what it is ahead of the opponent instead:
    the two rewards then sum to 1 (`grounded`) or to 0 (`paper`, -2 to 2). With `judge` a language
    model scores the arguments instead.

    | mode | range | reward of a turn |
    |---|---|---|
    | `grounded` | 0 to 1 | gate · topic · (0.6 + 0.4 side) |
    | `judged` | 0 to 1 | the same, times the score of the argument by `scorer` |
    | `paper` | 0 to 2 | score of the argument, plus that of the whole debate in the last turn |

    See `mlrl_envs.rewards.debate.score`, `mlrl_envs.rewards.debate.argument` and
    `mlrl_envs.rewards.debate.judge`.

Reads:
    The words of the argument, of the key points of both sides and of other propositions, of the
    proposition and of the opponent's last argument, and counts of word pairs in people's texts.
    `vocabulary="topic"` reads words of the topic's field, too, also for made propositions.

Cannot read:
    Whether an argument is true or follows, and an argument for the other side in neutral words.
    Fluent frames filled with words of the topic pass. `judged` adds what its scorer reads.

Data:
    24 propositions written one by one and 2880 made from 40 topics, with key points for both sides
    that no agent reads. There are no reference answers.

Version history:
    v1: Generated propositions, relevance by contrast, `reward="judged"`. Replaces v0.

Example:
    env = mlrl_envs.make("mlrl/debate-v1", split="sample", max_turns=2, mode="zero_sum")
    observations, infos = env.reset(seed=0)
    actions = {"pro": "It is good because it helps people.", "con": "I disagree."}
    observations, rewards, *_ = env.step(actions)
    assert abs(sum(rewards.values()) - 1.0) < 1e-9
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mlrl_envs.config import check_choice
from mlrl_envs.datasets.debate import contrast_tasks, load_debate
from mlrl_envs.datasets.propositions import VOCABULARIES
from mlrl_envs.envs.family import Family
from mlrl_envs.envs.history import quote
from mlrl_envs.envs.options import PROSE_SCORER, DataConfig
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.models import Endpoint, as_endpoint
from mlrl_envs.rewards.debate.judge import score_judged
from mlrl_envs.rewards.debate.score import (
    CON,
    PRO,
    DebateRules,
    score_grounded,
    score_paper,
    topic_of,
)
from mlrl_envs.rewards.prose import contrast_of, judge_texts
from mlrl_envs.tasks import DebateTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Turn

__all__ = ["CON", "PRO", "DebateConfig", "DebateFamily", "parallel_env"]

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


@dataclass(frozen=True)
class DebateConfig(DataConfig):
    """Options of a debate.

    Attributes:
        max_turns: Number of arguments of each side, at least 1.
        communication: `"broadcast"` shows each side the earlier arguments of the other.
        mode: `"cooperative"` pays each side its own score, `"zero_sum"` what it is ahead.
        judge: `"rules"`, or a language model: an `Endpoint`, or a mapping with `base_url`, `model`
            and other fields of it.
        vocabulary: Words that count as the topic in `grounded` and `judged`: `"points"`, those of
            the key points and, for the propositions written one by one, of their field; `"topic"`,
            those of the field for the propositions made from topics, too. The sample has no
            such topics.
        data_path: A file with other propositions; None uses the built-in ones.
    """

    REWARDS: ClassVar[tuple[str, ...]] = ("grounded", "judged", "paper")
    SCORER: ClassVar[object] = PROSE_SCORER

    max_turns: int = 3
    communication: str = "broadcast"
    mode: str = "cooperative"
    judge: str | Endpoint | Mapping[str, Any] = "rules"
    vocabulary: str = "points"

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        check_choice("mode", self.mode, ("cooperative", "zero_sum"))
        if isinstance(self.judge, str):
            check_choice("judge", self.judge, ("rules", "{'base_url': ..., 'model': ...}"))
        else:
            object.__setattr__(self, "judge", as_endpoint(self.judge))
            if self.reward == "paper":
                raise InvalidArgumentError("the published formula has no judge: use judge='rules'")
        self._check_vocabulary()

    def _check_vocabulary(self) -> None:
        check_choice("vocabulary", self.vocabulary, VOCABULARIES)
        has_judge = isinstance(self.judge, Endpoint)
        if self.vocabulary == "topic" and self.data_path is not None:
            raise InvalidArgumentError(
                "vocabulary='topic' is of the built-in topics, got it with data_path "
                f"{str(self.data_path)!r}: give each row key points with the words that count"
            )
        if self.vocabulary == "topic" and (self.reward == "paper" or has_judge):
            raise InvalidArgumentError(
                "vocabulary is read by rewards 'grounded' and 'judged' without a model as judge, "
                f"got vocabulary='topic' with {'a judge' if has_judge else repr('paper')}"
            )


@dataclass(frozen=True)
class DebateFamily(Family[DebateConfig, DebateTask]):
    """Propositions that `pro` and `con` debate."""

    env_id: ClassVar[str] = "mlrl/debate-v1"
    config_type: ClassVar[type[DebateConfig]] = DebateConfig
    feedback_heading: ClassVar[str] = "Feedback on your last argument"

    @classmethod
    def load_tasks(cls, config: DebateConfig) -> tuple[DebateTask, ...]:
        """Return the propositions of the split."""
        return load_debate(config.split, config.path, config.vocabulary)

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`pro` and `con`."""
        return (PRO, CON)

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) for `grounded` and `judged`; (0, 2) for `paper`, (-2, 2) if it is zero-sum."""
        if self.config.reward != "paper":
            return 0.0, 1.0
        return (-2.0, 2.0) if self.config.mode == "zero_sum" else (0.0, 2.0)

    def prompt(self, task: DebateTask, agent: AgentID) -> str:
        """Return the proposition and the agent's side."""
        other = _other(agent)
        return _FIRST.format(
            proposition=task.proposition,
            agent=agent,
            side=_SIDES[agent],
            other=other,
            other_side=_SIDES[other],
        )

    def history(self, turns: Sequence[Turn], agent: AgentID) -> list[str]:
        """Return all arguments so far, those of the opponent only if they are broadcast."""
        paragraphs = []
        for number, turn in enumerate(turns, start=1):
            own = quote(turn.actions[agent], MAX_QUOTED_CHARS)
            paragraphs.append(f"You argued in turn {number}:\n{own}")
            if self.is_broadcast:
                other = _other(agent)
                argument = quote(turn.actions[other], MAX_QUOTED_CHARS)
                paragraphs.append(f"{other} argued in turn {number}:\n{argument}")
        return paragraphs

    def request(self, agent: AgentID) -> str:
        """Return the request for the next argument."""
        return _NEXT_HEARD.format(other=_other(agent)) if self.is_broadcast else _NEXT

    def score(self, attempts: Sequence[Attempt[DebateTask]], sandbox: ProgramRunner) -> list[Score]:  # noqa: ARG002  runs no programs
        """Score attempts by the published formula, by contrast, or by a model in one batch."""
        config = self.config
        rules = DebateRules(config.mode == "zero_sum", config.max_turns, self.is_broadcast)
        if config.reward == "paper":
            return [score_paper(attempt, rules) for attempt in attempts]
        prompts = [self.prompts(attempt.task) for attempt in attempts]
        if isinstance(config.judge, Endpoint):
            return score_judged(attempts, rules, prompts, config.judge)
        judged = judge_texts(
            attempts, self.tasks, self.prompts, lambda task: task.proposition, self.scorer
        )
        tasks = (*contrast_tasks(config.vocabulary), *(self.tasks if config.path else ()))
        contrast = contrast_of(tuple(dict.fromkeys(topic_of(task) for task in tasks)))
        return [
            score_grounded(attempt, rules, told, contrast=contrast, judged=each)
            for attempt, told, each in zip(attempts, prompts, judged, strict=True)
        ]


parallel_env = DebateFamily.make_env


def _other(agent: AgentID) -> AgentID:
    return CON if agent == PRO else PRO
