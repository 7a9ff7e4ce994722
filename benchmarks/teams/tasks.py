"""The tasks, and how each is imitated and learnt."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.games.model import ModelSize

__all__ = ["TASKS", "TeamTask"]

# With 1e-3, which suits the few tokens of a move, returns of answers of 100 tokens fell.
TEXT_LR = 2e-4


@dataclass(frozen=True)
class TeamTask:
    """A task, the model that learns it, and the work of imitation and learning.

    Attributes:
        env_id: The environment.
        env: Its options.
        scripts: Scripts that are imitated, one drawn for each turn, see `scripted_actions`.
        references: Scripts whose held-out returns stand beside the results.
        answers: Agents that act in a turn, at most; the one agent writes as many answers at once.
        max_new_tokens: Longest answer of one agent.
        unread: Regular expressions of text that the model does not read.
        imitated: Further options of the environments of imitated games, which take turns.
        games: Number of imitated games.
        imitation: Number of updates of imitation.
        updates: Number of updates of learning.
        episodes: Episodes of an update, a multiple of 8.
        lr: Learning rate of learning.
        eval_tasks: Number of held-out tasks.
        size: Size of the model.
        digits: Whether each digit is a token, and tokens keep the white space before them.
    """

    env_id: str
    env: Mapping[str, Any]
    scripts: tuple[str, ...]
    references: tuple[str, ...]
    answers: int
    max_new_tokens: int
    unread: tuple[str, ...]
    imitated: tuple[Mapping[str, Any], ...] = ({},)
    games: int = 2000
    imitation: int = 400
    updates: int = 60
    episodes: int = 128
    lr: float = 1e-3
    eval_tasks: int = 200
    size: ModelSize = field(default_factory=ModelSize)
    digits: bool = False


_NETWORK_UNREAD = (
    r"You are a node of a network[^\n]*",
    r"Answer for .*? in between\.",
    r"send your neighbours a short message: <move>\.\.\.</move>",
    r": <move>\.\.\.</move>",
    r"You are node",
    r"Your neighbours",
)
_text_task = functools.partial(TeamTask, episodes=64, lr=TEXT_LR, eval_tasks=100, digits=True)
TASKS: Mapping[str, TeamTask] = {
    "network": TeamTask(
        "mlrl/network-v0",
        {"num_agents": 4, "rounds": 2},
        scripts=("random", "local"),
        references=("random", "constant 3231", "rank", "local", "central"),
        answers=4,
        max_new_tokens=4,
        unread=_NETWORK_UNREAD,
    ),
    "network-seats": TeamTask(
        "mlrl/network-v0",
        {"num_agents": 4, "rounds": 2, "seats": "random"},
        scripts=("random", "local"),
        references=("random", "constant 1231", "rank", "local", "central"),
        answers=4,
        max_new_tokens=4,
        unread=_NETWORK_UNREAD,
    ),
    "puzzle": TeamTask(
        "mlrl/puzzle-v0",
        {"size": 5},
        scripts=("random", "compass"),
        references=("random", "alone", "compass", "optimal"),
        answers=1,
        max_new_tokens=7,
        unread=(
            r"You are the (planner|executor):[^\n]*",
            r"# wall, R robot, G goal[^\n]*",
            r"Answer for .*? in between\.",
            r"Answer with one of them: <move>\.\.\.</move>",
            r"Tell the executor its next \d+ moves: <move>\.\.\.</move>",
            r"Moves: [a-z, ]+",
            r"Around you|The planner said|Your moves since then",
        ),
    ),
    "negotiation": TeamTask(
        "mlrl/negotiation-v0",
        {"talk": False},
        scripts=("random", "concede"),
        references=("random", "equal shares", "concede", "nash"),
        answers=2,
        max_new_tokens=12,
        unread=(
            r"and divide items with[^\n]*",
            r"Now round \d of \d\.",
            r"Worth of one to you:|All together: 10\.",
            r"Say how many you take:[^\n]*",
            r"Answer for .*? in between\.",
        ),
    ),
    "math": _text_task(
        "mlrl/math-v2",
        {"topics": ["multistep"], "levels": [1], "max_turns": 1, "problem_seed": 8},
        scripts=("short", "reference"),
        references=("reference",),
        answers=2,
        max_new_tokens=32,
        unread=(
            r"Problem: A \w+ has|\w+ on Monday morning|How many \w+ does[\s\S]*?<number>",
            r"Answer for .*? in between\.",
        ),
        # With 8,000 games and 2,000 updates, two of three seeds had not learnt to calculate.
        imitated=tuple({"problem_seed": seed} for seed in range(9, 41)),
        games=32_000,
        imitation=6000,
        updates=120,
        eval_tasks=200,
    ),
    "functions": _text_task(
        "mlrl/functions-v0",
        {"topics": ["numbers"], "levels": [2], "num_tasks": 2000, "max_turns": 1},
        scripts=("reference", "together"),
        references=("reference", "together"),
        answers=2,
        max_new_tokens=128,
        unread=(
            r"Python problem:|\"\"\"|Take `[^\n]*|>>> [^\n]*\n[^\n]*\n",
            r", one of 2 programmers[\s\S]*?and nothing else\.",
            r"Answer for .*? in between\.",
        ),
        imitation=800,
    ),
    "coder-tester": _text_task(
        "mlrl/coder-tester-v1",
        {
            "dataset": "functions",
            "topics": ["numbers"],
            "levels": [1],
            "max_turns": 2,
            "num_tests": 3,
        },
        scripts=("careless", "thorough"),
        references=("careless", "copied example", "thorough"),
        answers=1,
        max_new_tokens=96,
        unread=(
            r"Python problem:|\"\"\"|Take `[^\n]*|>>> [^\n]*\n[^\n]*\n",
            r"You are the (coder|tester):[\s\S]*?(and nothing else\.|arguments and results\.)",
            r"Results of the last code:[\s\S]*?(?=Write your tests)",
            r"Answer for .*? in between\.",
        ),
        imitation=800,
    ),
    "tools": _text_task(
        "mlrl/tools-v1",
        {"kinds": ["cargo"], "levels": [1], "num_tasks": 2000},
        scripts=("careful", "careful", "careful", "careful", "hasty"),
        references=("hasty", "careful"),
        answers=2,
        max_new_tokens=48,
        unread=(
            r", one of 2 agents who[^\n]*",
            r"Question: What does the whole[^\n]*",
            r"The archive never names ships\. The \w+ is the vessel",
            r"In this harbour a crate of|How many crates the[^\n]*",
            r"These tools are enough:[\s\S]*?Your part:[^\n]*",
            r"The vessel entered as [^\n]*? with",
            r"Feedback on the last turn:[\s\S]*?same format as before\.",
            r"Answer for .*? in between\.",
        ),
        imitation=1500,
        size=ModelSize(max_tokens=1024),
    ),
    "strbuild": _text_task(
        "mlrl/strbuild-v0",
        {"source": "procedural", "levels": [1, 2], "max_turns": 1},
        scripts=("half", "reference"),
        references=("same letter", "half", "reference"),
        answers=2,
        max_new_tokens=224,
        unread=(
            r"Write the string [A-Z]+ with blocks on a wall\.",
            r"; builder_\d works on the same wall[^\n]*",
            r"The wall: x from[^\n]*",
            r"Your blocks:[\s\S]*?/setblock x y 0 block",
            r"Answer for .*? in between\.",
        ),
        games=1000,
        imitation=500,
        updates=42,
        size=ModelSize(max_tokens=1024),
    ),
    "housebuild": _text_task(
        "mlrl/housebuild-v0",
        {"source": "procedural", "max_turns": 1},
        scripts=("half", "reference"),
        references=("half", "reference"),
        answers=2,
        max_new_tokens=384,
        unread=(
            r"Build a house\.",
            r"; builder_\d works in the same box[^\n]*",
            r"The box: x from[^\n]*",
            r"layer|z=(?=\d)",
            r"Divide the work:[\s\S]*?x2 y2 z2 block",
        ),
        games=1000,
        imitation=500,
        updates=42,
        size=ModelSize(max_tokens=2048),
    ),
}
