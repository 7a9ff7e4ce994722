"""Propositions made from topics: what someone should do about a topic, for 6 bodies and 12 deeds.

`debate_topics.txt` has a line for each topic with four points in favour of it and four against it.
A proposition that promotes the topic has the former as key points of `pro`, one that opposes it the
latter, so that the same points serve both sides. One topic in five is for evaluation only.

`debate_vocabulary.txt` has a line for each topic with words of its field that are not in its name
or its points. Tasks have them with `vocabulary="topic"`, for scoring only; the words were written
before any argument was scored with them.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from mlrl_envs.config import check_choice
from mlrl_envs.errors import InvalidDataError, unknown_name
from mlrl_envs.tasks import DebateTask

__all__ = ["VOCABULARIES", "load_topics", "load_vocabulary", "make_propositions"]

VOCABULARIES = ("points", "topic")
TOPICS = Path(__file__).parent / "debate_topics.txt"
VOCABULARY = Path(__file__).parent / "debate_vocabulary.txt"
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


def make_propositions(split: str, vocabulary: str = "points") -> tuple[DebateTask, ...]:
    """Return the propositions of `train` or `eval`; they share no topic.

    Args:
        split: `"train"` or `"eval"`.
        vocabulary: `"topic"` adds the words of the topic's field to each task.
    """
    words = _words(vocabulary)
    return tuple(
        _make(topic, f"debate/{split}/{number}/{deed}/{body}", deed, body, words)
        for number, topic in enumerate(_read())
        if (number % EVAL_SHARE == EVAL_SHARE - 1) == (split == "eval")
        for deed in range(len(PROMOTING) + len(OPPOSING))
        for body in range(len(BODIES))
    )


def load_topics(vocabulary: str = "points") -> tuple[DebateTask, ...]:
    """Return one proposition for each topic of both splits.

    Args:
        vocabulary: `"topic"` adds the words of the topic's field to each task.
    """
    words = _words(vocabulary)
    return tuple(_make(topic, topic.name, 0, 0, words) for topic in _read())


@lru_cache(maxsize=4)
def load_vocabulary(path: Path = VOCABULARY) -> Mapping[str, tuple[str, ...]]:
    """Return the words of each topic's field, from a file with a topic and words in a line.

    Raises:
        InvalidDataError: If a line has no words, or a topic no line or two of them.
        UnknownNameError: If there is no such topic.
    """
    names = [topic.name for topic in _read()]
    found: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        name, _, words = line.partition(" | ")
        if name not in names:
            raise unknown_name("topic", name, names)
        if name in found or not words.strip():
            fault = f"{name!r} again" if name in found else f"no words for {name!r}"
            raise InvalidDataError(f"{path.name} line {number} has {fault}")
        found[name] = tuple(words.split())
    missing = [name for name in names if name not in found]
    if missing:
        raise InvalidDataError(f"{path.name} has no line for {', '.join(missing)}")
    return MappingProxyType(found)


def _words(vocabulary: str) -> Mapping[str, tuple[str, ...]]:
    check_choice("vocabulary", vocabulary, VOCABULARIES)
    return load_vocabulary() if vocabulary == "topic" else {}


def _make(
    topic: _Topic, task_id: str, deed: int, body: int, words: Mapping[str, tuple[str, ...]]
) -> DebateTask:
    verb = (*PROMOTING, *OPPOSING)[deed]
    points = (topic.good, topic.bad) if deed < len(PROMOTING) else (topic.bad, topic.good)
    proposition = f"{BODIES[body]} should {verb} {topic.name}."
    return DebateTask(task_id, proposition, *points, words.get(topic.name, ()))


@lru_cache(maxsize=1)
def _read() -> tuple[_Topic, ...]:
    rows = [line.split(" | ") for line in TOPICS.read_text("utf-8").splitlines()]
    return tuple(_Topic(name, tuple(g.split("; ")), tuple(b.split("; "))) for name, g, b in rows)
