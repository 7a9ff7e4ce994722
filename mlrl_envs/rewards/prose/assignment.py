"""Sentences of a text that speak of the assignment instead of the source.

A sentence is about the assignment if it

- addresses the reader ("Your teammate writes ...", "You explain ..."): it begins with a word of the
  second person while no sentence of the source does; or, while the source has none at all, holds a
  possessive, two such words, or one that begins a clause ("Finally, you ..."). A lone "you" within
  a clause is often everybody, and questions are free if the source asks one; or
- holds three distinct content words of the instructions that the source lacks, or one and a word of
  writing (paragraph, text), or three words of writing, or two of which one is of rewriting; or
- repeats a label of the form that all sources have, such as TITLE: it begins with the label and a
  colon ("Title: ..."), or holds a word that begins like a label of six or more letters ("SUBREDD",
  of SUBREDDIT) and that the source has only as a label. Copies of a sentence of the source are
  left to other factors.

Words are compared by stem, and what the source has, labels apart, is never a sign. Common words
such as "two" and "find" are not counted, so that scientific prose ("the implications", "in this
paper") is free. Only words are read: a text that speaks of its assignment in the third person and
in words of its own is not found, and a retelling that often says "your" to everybody is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mlrl_envs.rewards.prose.words import MAX_CHARS, content_of, ramp, stem, words_of

__all__ = ["assignment_score", "assignment_share"]

SHARES = (0.4, 0.15)  # shares of words about the assignment that score 0 and 1
MANY = 3  # words of the instructions, or of writing, in a sentence about the assignment
_POSSESSIVE = frozenset({"your", "yours", "yourself", "yourselves"})
_SECOND_PERSON = _POSSESSIVE | {"you"}
_REWRITING_WORDS = (
    "teammate rewrite rewrote rewritten rewriting reword rewording rephrase rephrasing paraphrase "
    "paraphrasing assignment"
)
_WRITING_WORDS = (
    "summarize summarise summary paragraph sentence prose text word essay write wrote written "
    "writing prompt"
)
_COMMON_WORDS = (
    "two three four five several different long short new time use find work know known follow "
    "open matter plain nothing"
)
_REWRITING = frozenset(map(stem, _REWRITING_WORDS.split()))
_WRITING = frozenset(map(stem, _WRITING_WORDS.split())) | _REWRITING
_COMMON = frozenset(map(stem, _COMMON_WORDS.split()))
_SENTENCE_END = re.compile("(?<=[.!?\u2026])[\"')\\]\u201d\u2019]*\\s+|\n+")
_LABELLED = re.compile(r"\W*\w+\s*[:\uff1a]")  # a word and a colon
_LABEL_START = 6  # letters of a label; fewer begin ordinary words (title, post)
_CLAUSE = re.compile("[,;:(\u2013\u2014]\\s*you\\b", re.IGNORECASE)


def assignment_score(
    text: str, instructions: str, source: str, labels: Sequence[str] = ()
) -> float:
    """Return 1 for a text with few words about the assignment, 0 for one with many.

    Args:
        text: The text.
        instructions: The prompt of the agent without the source.
        source: What the text retells.
        labels: Labels of the form that sources have, in capitals.
    """
    return ramp(assignment_share(text, instructions, source, labels), *SHARES)


def assignment_share(
    text: str, instructions: str, source: str, labels: Sequence[str] = ()
) -> float:
    """Return the share of a text's words that are in sentences about the assignment."""
    signs = _signs(instructions, source, labels)
    sizes = [(len(words_of(sentence)), signs.found_in(sentence)) for sentence in _sentences(text)]
    total = sum(size for size, _ in sizes)
    return sum(size for size, found in sizes if found) / total if total else 0.0


@dataclass(frozen=True)
class _Signs:
    """Signs that a sentence is about the assignment.

    Attributes:
        told: Stems of the instructions that are not of writing.
        writing: Stems of words of writing.
        within: Whether the second person counts within a sentence.
        first: Whether it counts at the beginning.
        asks: Whether the second person is free in questions.
        labels: Labels, in lower case.
        known: Words of the source without labels.
        sentences: Sentences of the source, labels included: copies are not judged here.
    """

    told: frozenset[str]
    writing: frozenset[str]
    within: bool
    first: bool
    asks: bool
    labels: frozenset[str]
    known: frozenset[str]
    sentences: frozenset[str]

    def found_in(self, sentence: str) -> bool:
        """Return whether a sentence is about the assignment."""
        return self._addresses(sentence) or self._repeats(sentence) or self._labels(sentence)

    def _addresses(self, sentence: str) -> bool:
        if self.asks and sentence.rstrip("\"')]\u201d\u2019 ").endswith("?"):
            return False
        words = words_of(sentence)
        return (self.first and words[0] in _SECOND_PERSON) or (
            self.within and _speaks_to_reader(sentence, words)
        )

    def _repeats(self, sentence: str) -> bool:
        stems = frozenset(content_of(sentence))
        told, writing = stems & self.told, stems & self.writing
        return (
            max(len(told), len(writing)) >= MANY
            or bool(told and writing)
            or (len(writing) > 1 and not writing.isdisjoint(_REWRITING))
        )

    def _labels(self, sentence: str) -> bool:
        if not self.labels or sentence in self.sentences:
            return False
        words = words_of(sentence)
        starts = {each[:_LABEL_START] for each in self.labels if len(each) >= _LABEL_START}
        return (words[0] in self.labels and _LABELLED.match(sentence) is not None) or any(
            word[:_LABEL_START] in starts and word not in self.known for word in words
        )


def _speaks_to_reader(sentence: str, words: Sequence[str]) -> bool:
    count = sum(word in _SECOND_PERSON for word in words)
    return (
        count > 1
        or not _POSSESSIVE.isdisjoint(words)
        or (count == 1 and _CLAUSE.search(sentence) is not None)
    )


def _signs(instructions: str, source: str, labels: Sequence[str]) -> _Signs:
    body = re.sub("|".join(f"\\b{each}:" for each in labels), " ", source) if labels else source
    known = frozenset(content_of(source))
    return _Signs(
        told=frozenset(content_of(instructions)) - known - _COMMON - _WRITING,
        writing=_WRITING - known,
        within=_SECOND_PERSON.isdisjoint(words_of(source)),
        first=not any(words_of(each)[0] in _SECOND_PERSON for each in _sentences(source)),
        asks="?" in source,
        labels=frozenset(label.lower() for label in labels),
        known=frozenset(words_of(body)),
        sentences=frozenset(_sentences(source)),
    )


def _sentences(text: str) -> list[str]:
    return [each for each in _SENTENCE_END.split(text[:MAX_CHARS]) if words_of(each)]
