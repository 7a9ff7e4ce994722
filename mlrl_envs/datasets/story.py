"""Creative prompts written for this project: ten for training, ten for evaluation, 50 for tests.

Each has a line of `story_words.txt`: words that stories about it may use, for scoring only, written
before any story was scored.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.tasks import StoryTask

__all__ = ["EVAL_PROMPTS", "TEST_PROMPTS", "TRAIN_PROMPTS", "load_story", "load_words"]

TRAIN_PROMPTS = (
    "Describe a city in the clouds:",
    "Tell of a lighthouse keeper who finds a message in a bottle:",
    "Describe a garden that only blooms at night:",
    "Tell of a clockmaker who repairs lost memories:",
    "Describe the last library on a desert planet:",
    "Tell of two friends who build a raft to cross the lake:",
    "Describe a market where dreams are sold:",
    "Tell of a dragon who is afraid of fire:",
    "Describe a train that travels under the sea:",
    "Tell of a child who learns the language of birds:",
)
EVAL_PROMPTS = (
    "Describe an island that moves with the tide:",
    "Tell of a baker whose bread makes people honest:",
    "Describe a castle made of ice in the middle of summer:",
    "Tell of an old robot who looks after a forest:",
    "Describe a village where nobody casts a shadow:",
    "Tell of a sailor who follows a falling star:",
    "Describe a museum that opens once in a hundred years:",
    "Tell of a musician who plays for the mountains:",
    "Describe a bridge between two winters:",
    "Tell of a fox who delivers letters in the snow:",
)
WORDS = Path(__file__).parent / "story_words.txt"
TEST_PROMPTS = tuple(WORDS.with_name("story_test_prompts.txt").read_text("utf-8").splitlines())
_PROMPTS = {"train": TRAIN_PROMPTS, "eval": EVAL_PROMPTS, "test": TEST_PROMPTS}
SPLITS = {
    "train": ("train",),
    "eval": ("eval",),
    "test": ("test",),
    # Without `test`, because texts are told apart by the prompts of `all`: with more prompts the
    # reward would be another one.
    "all": ("train", "eval"),
    "sample": ("train",),  # the prompts need no download
}


def load_story(split: str = "train", prompts: Sequence[str] | None = None) -> tuple[StoryTask, ...]:
    """Return the tasks of a split, or one task for each given prompt.

    Args:
        split: `"train"`, `"eval"`, `"test"`, `"all"` (`train` and `eval`) or `"sample"`.
        prompts: Prompts that replace the built-in ones; `split` has no effect then.

    Raises:
        UnknownNameError: If there is no such split.
        InvalidArgumentError: If `prompts` is empty or contains an empty text or another type.
    """
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    if prompts is not None:
        return _own_tasks(prompts)
    return tuple(
        StoryTask(f"story/{name}/{number}", prompt, load_words(WORDS)[f"story/{name}/{number}"])
        for name in SPLITS[split]
        for number, prompt in enumerate(_PROMPTS[name])
    )


@lru_cache(maxsize=4)
def load_words(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the words that go with each task, from a file with a task id and words in a line."""
    lines = [line.split() for line in path.read_text("utf-8").splitlines()]
    return {task_id: tuple(words) for task_id, *words in lines}


def _own_tasks(prompts: Sequence[str]) -> tuple[StoryTask, ...]:
    if not isinstance(prompts, list | tuple) or not prompts:
        raise InvalidArgumentError(f"prompts must be a list of texts, got {prompts!r}")
    for prompt in prompts:
        if not isinstance(prompt, str) or not prompt.strip():
            raise InvalidArgumentError(f"prompts must be non-empty texts, got {prompt!r}")
    known = {task.prompt: task.words for task in load_story("all")}
    return tuple(
        StoryTask(f"story/own/{n}", prompt, known.get(prompt, ()))
        for n, prompt in enumerate(prompts)
    )
