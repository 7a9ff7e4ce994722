"""Base class of the families in which two writers retell one source.

TLDR and arXiv differ in their data, the parts of the two writers and the constants of the rewards,
which each of their families states as a `Brief`.

Observation:
    The source and the agent's part. From turn 2 on also the agent's last text, the feedback and the
    request to revise it; with `communication="broadcast"` the teammate's last text, too.

Action:
    The text, without a heading or comments.

Reads:
    The words of both texts, of the source and of the other sources of the split, runs of three
    words, the texts' lengths, and counts of word pairs in people's texts. `assignment=True` reads
    the words of the agent's prompt, too.

Cannot read:
    Truth: "the dog bit the man" and "the man bit the dog" earn the same; `facts=True` reads which
    numbers and names the source lacks, not what is said of the others. Sense: a search over
    frames filled with words of the source finds texts that pass. `judged` adds what its scorer
    reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlrl_envs.datasets.sources import SAMPLE
from mlrl_envs.envs.family import Family
from mlrl_envs.envs.options import RETELLING_SCORER, DataConfig
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.rewards.prose import Contrast, contrast_of, judge_texts
from mlrl_envs.rewards.writing.grounded import WritingRules, score_grounded
from mlrl_envs.rewards.writing.paper import MAX_REWARD, Levels, score_paper
from mlrl_envs.tasks import WritingTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score

__all__ = ["Brief", "WritingConfig", "WritingFamily"]


@dataclass(frozen=True)
class WritingConfig(DataConfig):
    """Options of retelling a source.

    Attributes:
        facts: Whether `grounded` and `judged` lower the score of a text for numbers and names that
            its source lacks.
        assignment: Whether they lower it for sentences about the assignment or to the reader,
            instead of about the source.
    """

    REWARDS: ClassVar[tuple[str, ...]] = ("grounded", "judged", "paper")
    SCORER: ClassVar[object] = RETELLING_SCORER

    facts: bool = False
    assignment: bool = False

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        for name, value in (("facts", self.facts), ("assignment", self.assignment)):
            if not isinstance(value, bool):
                raise InvalidArgumentError(f"{name} must be a bool, got {value!r}")
            if value and self.reward == "paper":
                raise InvalidArgumentError(
                    f"{name} is read by rewards 'grounded' and 'judged', got {name}=True with "
                    "'paper'"
                )


@dataclass(frozen=True)
class Brief:
    """Prompts and reward constants of one writing task.

    Attributes:
        heading: The line above the quoted source.
        parts: The part of each of the two agents, in order.
        levels: Constants of the published reward.
        rules: Constants of the grounded reward.
    """

    heading: str
    parts: Mapping[AgentID, str]
    levels: Levels
    rules: WritingRules


@dataclass(frozen=True)
class WritingFamily(Family[WritingConfig, WritingTask]):
    """Retelling of one source by two writers.

    Attributes:
        brief: Prompts and reward constants.
    """

    config_type: ClassVar[type[WritingConfig]] = WritingConfig
    brief: ClassVar[Brief]

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """The two agents of the brief."""
        return tuple(self.brief.parts)

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) for `grounded` and `judged`, (0, 3) for `paper`."""
        return 0.0, MAX_REWARD if self.config.reward == "paper" else 1.0

    def prompt(self, task: WritingTask, agent: AgentID) -> str:
        """Return the source and the agent's part."""
        return f"{self.brief.heading}:\n\n{task.source}\n\n{self.brief.parts[agent]}"

    def score(
        self,
        attempts: Sequence[Attempt[WritingTask]],
        sandbox: ProgramRunner,  # noqa: ARG002  runs no programs
    ) -> list[Score]:
        """Score attempts by their texts, with `judged` in one batch of the text scorer."""
        if self.config.reward == "paper":
            return [score_paper(attempt, levels=self.brief.levels) for attempt in attempts]
        judged = judge_texts(
            attempts, self.tasks, self.prompts, lambda task: task.source, self.scorer
        )
        contrast = self.contrast()
        return [
            score_grounded(
                attempt,
                rules=self.brief.rules,
                contrast=contrast,
                judged=each,
                facts=self.config.facts,
                instructions=self.instructions(attempt.task) if self.config.assignment else None,
            )
            for attempt, each in zip(attempts, judged, strict=True)
        ]

    def instructions(self, task: WritingTask) -> dict[AgentID, str]:
        """Return the prompt of every agent without the source."""
        told = self.prompts(task)
        return {agent: prompt.replace(task.source, "\n", 1) for agent, prompt in told.items()}

    def contrast(self) -> Contrast:
        """Return the sources that texts are compared with: the split and the sample."""
        sample = self.load_tasks(type(self.config)(split=SAMPLE))
        return contrast_of(tuple(task.source for task in (*sample, *self.tasks)))
