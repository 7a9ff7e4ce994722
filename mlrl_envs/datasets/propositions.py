"""Propositions made from topics: what someone should do about a topic, for 6 bodies and 12 deeds.

`debate_topics.txt` has a line for each topic with four points in favour of it and four against it.
A proposition that promotes the topic has the former as key points of `pro`, one that opposes it the
latter, so that the same points serve both sides. One topic in five is for evaluation only.
"""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from mlrl_envs.tasks import DebateTask

__all__ = ["load_topics", "make_propositions"]

TOPICS = Path(__file__).parent / "debate_topics.txt"
EVAL_SHARE = 5
BODIES = (
    "Cities",
    "Governments",
    "Rich countries",
    "The European Union",
    "Small towns",
    "Island states",
)
PROMOTING = ("promote", "subsidise", "permit more", "give tax relief for", "welcome", "defend")
OPPOSING = ("ban", "heavily tax", "restrict", "phase out", "discourage", "stop all support for")


class _Topic(NamedTuple):
    name: str
    good: tuple[str, ...]
    bad: tuple[str, ...]


def make_propositions(split: str) -> tuple[DebateTask, ...]:
    """Return the propositions of `train` or `eval`; they share no topic."""
    return tuple(
        _make(topic, f"debate/{split}/{number}/{deed}/{body}", deed, body)
        for number, topic in enumerate(_read())
        if (number % EVAL_SHARE == EVAL_SHARE - 1) == (split == "eval")
        for deed in range(len(PROMOTING) + len(OPPOSING))
        for body in range(len(BODIES))
    )


def load_topics() -> tuple[DebateTask, ...]:
    """Return one proposition for each topic of both splits."""
    return tuple(_make(topic, topic.name, 0, 0) for topic in _read())


def _make(topic: _Topic, task_id: str, deed: int, body: int) -> DebateTask:
    verb = (*PROMOTING, *OPPOSING)[deed]
    points = (topic.good, topic.bad) if deed < len(PROMOTING) else (topic.bad, topic.good)
    return DebateTask(task_id, f"{BODIES[body]} should {verb} {topic.name}.", *points)


@lru_cache(maxsize=1)
def _read() -> tuple[_Topic, ...]:
    rows = [line.split(" | ") for line in TOPICS.read_text("utf-8").splitlines()]
    return tuple(_Topic(name, tuple(g.split("; ")), tuple(b.split("; "))) for name, g, b in rows)
