"""The writing family: two writers retell one source, at once and blind to each other.

TLDR and arXiv differ in their rows, in what each writer is asked for, and in the constants of both
rewards; each of their files hands these to `WritingFamily` as a `Brief`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlrl_envs.config import DataConfig
from mlrl_envs.envs.history import with_history
from mlrl_envs.feedback import get_feedback
from mlrl_envs.rewards.prose.rouge import check_rouge
from mlrl_envs.rewards.writing.grounded import Rules, score_grounded
from mlrl_envs.rewards.writing.paper import MAX_REWARD, Levels, score_paper
from mlrl_envs.tasks import WritingTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Turn

__all__ = ["Brief", "WritingConfig", "WritingFamily"]


@dataclass(frozen=True)
class WritingConfig(DataConfig):
    """Options of the writing family."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            InvalidArgumentError: If a value is outside its range.
            MissingPackageError: If the reward needs a package that is not installed.
        """
        super().__post_init__()
        get_feedback(self.feedback)
        if self.reward == "grounded":
            check_rouge()


@dataclass(frozen=True)
class Brief:
    """What one task of the family asks for, and what it pays.

    Attributes:
        heading: What the source is, before it is quoted.
        parts: For each of the two agents, in order, what it is told to write.
        levels: Constants of the published reward.
        rules: Constants of the grounded reward.
    """

    heading: str
    parts: Mapping[AgentID, str]
    levels: Levels
    rules: Rules


@dataclass(frozen=True)
class WritingFamily:
    """Sources, retold in two texts.

    Attributes:
        config: Options.
        brief: What is asked of the writers.
        tasks: Every source of the split.
    """

    config: WritingConfig
    brief: Brief
    tasks: tuple[WritingTask, ...]

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """The two roles of the brief."""
        return tuple(self.brief.parts)

    @property
    def max_turns(self) -> int:
        """Joint actions an episode may have."""
        return self.config.max_turns

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) grounded; (0, 3) by the published formula."""
        return 0.0, 1.0 if self.config.reward == "grounded" else MAX_REWARD

    def observe(self, task: WritingTask, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the source and the agent's part; from turn 2 on also what came of it."""
        first = f"{self.brief.heading}:\n\n{task.source}\n\n{self.brief.parts[agent]}"
        return with_history(first, self.config, task, turns, agent)

    def score(
        self,
        attempts: Sequence[Attempt[WritingTask]],
        sandbox: ProgramRunner,  # noqa: ARG002  runs no programs
    ) -> list[Score]:
        """Score attempts one by one; nothing is executed."""
        if self.config.reward == "paper":
            return [score_paper(attempt, levels=self.brief.levels) for attempt in attempts]
        return [
            score_grounded(
                attempt, rules=self.brief.rules, instructions=self._instructions(attempt.task)
            )
            for attempt in attempts
        ]

    def reference(self, task: WritingTask) -> Mapping[AgentID, str] | None:  # noqa: ARG002  no key
        """Return None: there are many ways to retell a text well."""
        return None

    def _instructions(self, task: WritingTask) -> dict[AgentID, str]:
        return {agent: self.observe(task, (), agent) for agent in self.agents}
