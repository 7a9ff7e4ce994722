"""The games of `benchmarks.workflows.learning`: what is imitated, and how much is learnt."""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks.games.model import ModelSize
from benchmarks.workflows.shapes import PLAIN, most_answers

__all__ = ["GAMES", "Answer", "WorkflowGame"]

MOVES, VERDICTS = ("<move>stag</move>", "<move>hare</move>"), ("APPROVED", "REVISE")
SLIPS = (-10, -2, -1, 1, 2, 10)


class Answer(NamedTuple):
    """Scripted answer of a node.

    Attributes:
        imitated: What the node should write.
        played: What the nodes after it read.
    """

    imitated: str
    played: str


@dataclass(frozen=True)
class WorkflowGame:
    """An environment, and the work of imitation and learning.

    Attributes:
        env_id: The environment.
        env: Its options.
        agent: One of its agents.
        answers_of: Returns scripted answers of the nodes that write. Arguments: the environment,
            what has been played in this episode by node, and a generator.
        extra: Texts that nodes may write or read, besides those of scripted play.
        imitated: Further options of the environments of scripted play, which take turns.
        played: Scripted episodes of each graph.
        imitation: Number of updates of imitation.
        updates: Number of updates of learning.
        answers: Answers of an update, at most.
        rollouts: Episodes of a task in an update; None for all of them.
        episodes: Held-out episodes before and after.
        max_new_tokens: Longest answer.
        lr: Learning rate of learning.
        unread: Regular expressions of text that the model does not read.
        size: Size of the model.
        digits: Whether each digit is a token, and tokens keep the white space before them.
    """

    env_id: str
    env: Mapping[str, Any]
    agent: str
    answers_of: Callable[[Any, Mapping[str, str], random.Random], dict[str, Answer]]
    extra: tuple[str, ...]
    unread: tuple[str, ...]
    played: int
    imitation: int
    updates: int
    answers: int
    episodes: int
    max_new_tokens: int
    lr: float
    rollouts: int | None = None
    imitated: tuple[Mapping[str, Any], ...] = ({},)
    size: ModelSize = field(default_factory=ModelSize)
    digits: bool = False

    def options(self, shape: str) -> dict[str, Any]:
        """Return the options of the environment, with the workflow of a shape."""
        return dict(self.env) if shape == PLAIN else {**self.env, "workflow": shape}

    def most_answers(self, shape: str) -> int:
        """Return the most answers that an episode asks for."""
        return most_answers(self.env_id, self.options(shape))

    def sizes(self, shape: str) -> tuple[int, int]:
        """Return the tasks of an update, and the rollouts of each."""
        episodes = self.answers // self.most_answers(shape)
        rollouts = self.rollouts or episodes
        return episodes // rollouts, rollouts


def _random_moves(env: Any, played: Mapping[str, str], draw: random.Random) -> dict[str, Answer]:  # noqa: ANN401, ARG001
    chosen = {node: draw.choice(VERDICTS if _is_critic(node) else MOVES) for node in env.acting}
    return {node: Answer(text, text) for node, text in chosen.items()}


def _right_or_slip(env: Any, played: Mapping[str, str], draw: random.Random) -> dict[str, Answer]:  # noqa: ANN401
    """Imitate right answers and right verdicts; half of the drafts that others read are wrong."""
    found = {}
    for node, right in env.reference_actions().items():
        if _is_critic(node):
            draft = played[node.replace("critic", "writer")]
            verdict = VERDICTS[0] if draft == right else VERDICTS[1]
            found[node] = Answer(verdict, verdict)
        else:
            found[node] = Answer(right, right if draw.random() < 0.5 else _slip(right, draw))
    return found


def _slip(text: str, draw: random.Random) -> str:
    """Return an answer with another result, the same in its last equation and its last line."""
    result = re.findall(r"-?\d+", text)[-1]
    wrong = str(int(result) + draw.choice(SLIPS))
    return re.sub(rf"(= |Answer: ){re.escape(result)}$", rf"\g<1>{wrong}", text, flags=re.MULTILINE)


def _is_critic(node: str) -> bool:
    return node.endswith("critic")


GAMES: dict[str, WorkflowGame] = {
    "stag-hunt": WorkflowGame(
        "mlrl/matrix-v0",
        {"matrix": "stag-hunt", "rounds": 1},
        agent="player_0",
        answers_of=_random_moves,
        extra=(*MOVES, *VERDICTS),
        # The same text of all prompts is not read, which saves half of the computation.
        unread=(
            r"Two players choose .*? gets 3\.",
            r"Answer with one of them: <move>\.\.\.</move>",
        ),
        played=20,
        imitation=120,
        updates=12,
        answers=212,
        episodes=64,
        max_new_tokens=4,
        lr=1e-3,
        size=ModelSize(hidden_size=48),
    ),
    "math": WorkflowGame(
        "mlrl/math-v2",
        {"topics": ["algebra"], "levels": [1], "max_turns": 1, "problem_seed": 8},
        agent="solver",
        answers_of=_right_or_slip,
        extra=VERDICTS,
        unread=(
            r"Problem: Solve for",
            r"You are (solver|verifier)\. A teammate[\s\S]*?<number>",
            r"Answer for .*? in between\.",
        ),
        imitated=tuple({"problem_seed": seed} for seed in range(8)),
        played=800,
        imitation=1200,
        updates=24,
        answers=512,
        episodes=200,
        max_new_tokens=24,
        lr=2e-4,
        rollouts=8,
        digits=True,
    ),
}
