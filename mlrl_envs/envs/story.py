"""Story writing: one agent writes the setup, the other a longer version of the same story.

Both agents read a creative prompt, such as "Describe a city in the clouds:", and write at the same
time without reading each other's text.

Agents:
    `setup` writes two or three plain sentences with the place, the main figure and what is at
    stake. `story` writes the story itself, two to three times as long.

Observation:
    The prompt and the agent's part. From turn 2 on also the agent's last text, the feedback and the
    request to revise it; with `communication="broadcast"` the teammate's last text, too.

Action:
    The text, without a heading or comments.

Reward:
    Both agents receive the same reward. An episode is solved from 0.75 on (`paper`: when the ratio
    of the lengths lies in its interval). `judged` reads a text scorer (`scorer`).

    | mode | range | reward of a turn |
    |---|---|---|
    | `grounded` | 0 to 1 | gate · topic · (0.8 + 0.2 length) |
    | `judged` | 0 to 1 | the same, times the score of each text |
    | `paper` | 0 to `scale` | `scale` · exp(-distance of the ratio of lengths to its interval) |

    See `mlrl_envs.rewards.writing.story`.

Reads:
    The words of both texts and of the prompt, words that go with this prompt and with others, the
    texts' lengths, and counts of word pairs in people's texts.

Cannot read:
    Sense: sentences in another order earn the same, and fluent prose with words that go with the
    prompt passes, such as sentences of other stories. `judged` adds what its scorer reads.

Data:
    Seventy prompts written for this project: ten to train on, ten to evaluate on, and 50 more in
    the split `test`. `prompts` replaces them; words that go with a topic are known for the built-in
    prompts only. There are no reference answers.

Version history:
    v1: Relevance by contrast with other prompts, `reward="judged"`, no lists of words. Replaces v0.

Example:
    env = mlrl_envs.make("mlrl/story-v1", split="sample", max_turns=2)
    observations, infos = env.reset(seed=0)
    actions = {"setup": "A city floats on a cloud.", "story": "One day the cloud began to rain."}
    observations, rewards, *_, infos = env.step(actions)
    assert set(infos["story"]["components"]) == {"topic", "length"}
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlrl_envs.config import check_number
from mlrl_envs.datasets.story import load_story
from mlrl_envs.envs.family import Family
from mlrl_envs.envs.options import PROSE_SCORER, FamilyConfig
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.rewards.prose import contrast_of, judge_texts
from mlrl_envs.rewards.writing.story import score_grounded, score_paper, topic_of
from mlrl_envs.tasks import StoryTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score

__all__ = ["SETUP", "STORY", "StoryConfig", "StoryFamily", "parallel_env"]

SETUP, STORY = "setup", "story"


@dataclass(frozen=True)
class StoryConfig(FamilyConfig):
    """Options of story writing.

    Attributes:
        prompts: Prompts that replace the built-in ones.
        min_ratio: Lowest ratio of the length of the story to that of the setup with full score.
        max_ratio: Highest such ratio.
        scale: Factor of the published reward; the grounded reward does not use it.
    """

    REWARDS: ClassVar[tuple[str, ...]] = ("grounded", "judged", "paper")
    SCORER: ClassVar[object] = PROSE_SCORER

    prompts: Sequence[str] | None = None
    min_ratio: float = 2.0
    max_ratio: float = 3.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
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


@dataclass(frozen=True)
class StoryFamily(Family[StoryConfig, StoryTask]):
    """Story writing for `setup` and `story`."""

    env_id: ClassVar[str] = "mlrl/story-v1"
    config_type: ClassVar[type[StoryConfig]] = StoryConfig
    parts: ClassVar[dict[AgentID, str]] = {
        SETUP: (
            "You write the setup of this story: two or three plain sentences with the place, "
            "the main figure and what is at stake. A teammate writes the full story at the same "
            "time. Write only the setup."
        ),
        STORY: (
            "You write the story itself: one vivid paragraph, two to three times as long as a "
            "short setup of two or three sentences, which a teammate writes at the same time. "
            "Write only the story."
        ),
    }

    @classmethod
    def load_tasks(cls, config: StoryConfig) -> tuple[StoryTask, ...]:
        """Return the prompts of the split, or those of the caller."""
        return load_story(config.split, config.prompts)

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`setup` and `story`."""
        return tuple(self.parts)

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) for `grounded` and `judged`, (0, scale) for `paper`."""
        return 0.0, self.config.scale if self.config.reward == "paper" else 1.0

    def prompt(self, task: StoryTask, agent: AgentID) -> str:
        """Return the creative prompt and the agent's part."""
        return f"{task.prompt}\n\n{self.parts[agent]}"

    def score(self, attempts: Sequence[Attempt[StoryTask]], sandbox: ProgramRunner) -> list[Score]:  # noqa: ARG002  runs no programs
        """Score attempts by their texts, with `judged` in one batch of the text scorer."""
        config = self.config
        bounds = (config.min_ratio, config.max_ratio)
        if config.reward == "paper":
            return [score_paper(attempt, bounds=bounds, scale=config.scale) for attempt in attempts]
        judged = judge_texts(
            attempts, self.tasks, self.prompts, lambda task: task.prompt, self.scorer
        )
        topics = (topic_of(task) for task in (*load_story("all"), *self.tasks))
        contrast = contrast_of(tuple(topics))
        return [
            score_grounded(attempt, bounds=bounds, contrast=contrast, judged=each)
            for attempt, each in zip(attempts, judged, strict=True)
        ]


parallel_env = StoryFamily.make_env


def _as_tuple(prompts: Sequence[str]) -> Sequence[str]:
    # Other types, such as a single str, are rejected when the tasks are loaded.
    return tuple(prompts) if isinstance(prompts, list | tuple) else prompts
