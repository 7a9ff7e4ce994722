"""Translate: one agent drafts, another revises, and the revision is compared with a reference.

python examples/translate.py [MODEL]
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mlrl_envs
import mlrl_learners
from mlrl_envs.types import Attempt, ProgramRunner, Score, Task, Turn

SENTENCES = {
    "Le chat dort sur la chaise.": "The cat sleeps on the chair.",
    "Demain nous irons à la mer.": "Tomorrow we will go to the sea.",
    "Elle lit un vieux livre.": "She reads an old book.",
    "Il pleut depuis trois jours.": "It has been raining for three days.",
}


def ngrams(text: str, length: int = 3) -> Counter[str]:
    """Return the character n-grams of a text."""
    return Counter(text[start : start + length] for start in range(len(text) - length + 1))


def chrf(text: str, reference: str) -> float:
    """Return the F1 score of character 3-grams, after chrF (Popović, 2015)."""
    found, wanted = ngrams(text), ngrams(reference)
    return 2 * (found & wanted).total() / max(1, found.total() + wanted.total())


@dataclass(frozen=True)
class Translation:
    """One agent translates a sentence from French into English."""

    agents: tuple[str, ...] = ("translator",)
    tasks: Sequence[Task] = tuple(map(Task, SENTENCES))
    max_turns: int = 1
    reward_range: tuple[float, float] = (0.0, 1.0)

    def observe(self, task: Task, turns: Sequence[Turn], agent: str) -> str:  # noqa: ARG002
        """Return the sentence."""
        return f"Translate into English. Write the translation alone.\n\n{task.task_id}"

    def score(self, attempts: Sequence[Attempt[Task]], sandbox: ProgramRunner) -> list[Score]:  # noqa: ARG002
        """Compare translations with the reference."""
        return [self._score(attempt) for attempt in attempts]

    def reference(self, task: Task) -> Mapping[str, str]:
        """Return the reference."""
        return {"translator": SENTENCES[task.task_id]}

    def _score(self, attempt: Attempt[Task]) -> Score:
        wanted = SENTENCES[attempt.task.task_id]
        score = chrf(attempt.actions["translator"].strip(), wanted)
        return Score({"translator": {"chrf": score}}, solved=score == 1.0)


TEAM = {"nodes": {"draft": {}, "revision": {"reads": ["draft"], "role": "Correct the draft."}}}


def parallel_env(split: str = "train") -> mlrl_envs.TextParallelEnv:  # noqa: ARG001
    """Make the environment of both agents; all splits have the same sentences."""
    env = mlrl_envs.TextParallelEnv(Translation(), env_id="mine/translation-v0")
    return mlrl_envs.workflow(env, TEAM)


mlrl_envs.register("mine/translation-v0", parallel_env)
learner = mlrl_learners.make(
    "magrpo",
    agents=["draft", "revision"],
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    sampling={"max_new_tokens": 16},
    group={"size": 4, "branching": "chain"},
)
result = mlrl_learners.train(
    env_id="mine/translation-v0", learner=learner, iterations=2, run_dir="runs/translate"
)
print(f"return {result.metrics['train/return']:.3f}")
