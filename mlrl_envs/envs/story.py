"""A story for two writers: `setup` lays the ground, `story` tells the longer version.

Both read a creative prompt and write at once, blind to each other.

Agents: `setup`, `story`.
Reward: grounded in (0, 1): length, continuity and relevance behind a gate of prose quality; paper
    in (0, scale): the ratio of the lengths alone. See `mlrl_envs.rewards.writing.story`.
Data: twenty prompts of our own, or the caller's.

Version history:
    v0: first version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.config import FamilyConfig, check_number
from mlrl_envs.datasets.story import load_story
from mlrl_envs.envs.history import with_history
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.feedback import get_feedback
from mlrl_envs.rewards.writing.story import score_grounded, score_paper
from mlrl_envs.shell.env import TextParallelEnv, build_env
from mlrl_envs.tasks import StoryTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Turn

__all__ = ["ENV_ID", "SETUP", "STORY", "StoryConfig", "StoryFamily", "parallel_env"]

ENV_ID = "mlrl/story-v0"
SETUP, STORY = "setup", "story"


@dataclass(frozen=True)
class StoryConfig(FamilyConfig):
    """Options of the story family.

    Attributes:
        prompts: The caller's own prompts; they replace the built-in ones.
        min_ratio: Least length of the story in lengths of the setup that pays in full.
        max_ratio: Greatest such length.
        scale: The published reward is multiplied by this; without effect on the grounded one.
    """

    prompts: Sequence[str] | None = None
    min_ratio: float = 2.0
    max_ratio: float = 3.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            InvalidArgumentError: If a value is outside its range.
        """
        super().__post_init__()
        if self.prompts is not None:
            object.__setattr__(self, "prompts", _as_tuple(self.prompts))
        for name in ("min_ratio", "max_ratio", "scale"):
            check_number(name, getattr(self, name))
        if not 0 < self.min_ratio <= self.max_ratio:
            raise InvalidArgumentError(
                f"need 0 < min_ratio <= max_ratio, got {self.min_ratio}, {self.max_ratio}"
            )
        if not self.scale > 0:
            raise InvalidArgumentError(f"scale must be positive, got {self.scale}")
        get_feedback(self.feedback)


@dataclass(frozen=True)
class StoryFamily:
    """Creative prompts, told in two lengths.

    Attributes:
        config: Options.
        tasks: Every prompt of the split.
    """

    config: StoryConfig
    tasks: tuple[StoryTask, ...]

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`setup` and `story`."""
        return (SETUP, STORY)

    @property
    def max_turns(self) -> int:
        """Joint actions an episode may have."""
        return self.config.max_turns

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) grounded; (0, scale) by the published formula."""
        return 0.0, 1.0 if self.config.reward == "grounded" else self.config.scale

    def observe(self, task: StoryTask, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the prompt and the agent's part in it; from turn 2 on also what came of it."""
        part = _SETUP_PART if agent == SETUP else _STORY_PART
        return with_history(f"{task.prompt}\n\n{part}", self.config, task, turns, agent)

    def score(self, attempts: Sequence[Attempt[StoryTask]], sandbox: ProgramRunner) -> list[Score]:  # noqa: ARG002  runs no programs
        """Score attempts one by one; nothing is executed."""
        config = self.config
        bounds = (config.min_ratio, config.max_ratio)
        if config.reward == "paper":
            return [score_paper(attempt, bounds=bounds, scale=config.scale) for attempt in attempts]
        return [
            score_grounded(attempt, bounds=bounds, instructions=self._instructions(attempt.task))
            for attempt in attempts
        ]

    def reference(self, task: StoryTask) -> Mapping[AgentID, str] | None:  # noqa: ARG002  no answer key
        """Return None: a prompt has no right answer."""
        return None

    def _instructions(self, task: StoryTask) -> dict[AgentID, str]:
        return {agent: self.observe(task, (), agent) for agent in self.agents}


def parallel_env(**options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Build the environment; options are those of `StoryConfig`, and of the shell."""
    return build_env(ENV_ID, StoryConfig, _family, options)


_SETUP_PART = (
    "You write the setup of this story: two or three plain sentences with the place, "
    "the main figure and what is at stake. A teammate writes the full story at the same time. "
    "Write only the setup."
)
_STORY_PART = (
    "You write the story itself: one vivid paragraph, two to three times as long as a short setup "
    "of two or three sentences, which a teammate writes at the same time. "
    "Write only the story."
)


def _family(config: StoryConfig) -> StoryFamily:
    return StoryFamily(config, load_story(config.split, config.prompts))


def _as_tuple(prompts: Sequence[str]) -> Sequence[str]:
    # A lone str, or what is no sequence at all, is refused when the tasks are made.
    return tuple(prompts) if isinstance(prompts, list | tuple) else prompts
