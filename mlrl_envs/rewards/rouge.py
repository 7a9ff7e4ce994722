"""What a text shares with its source, by ROUGE: the words that carry meaning, and copied runs.

The figures come from `rouge-score-rs`, which returns the numbers of Google's `rouge-score` to the
last bit, in a thirtieth of the time and without nltk. Where meaning counts, function words are
taken out of both texts before: any two English texts share half of theirs.

Source: C.-Y. Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from mlrl_envs.errors import MissingPackageError
from mlrl_envs.parsing import printable
from mlrl_envs.rewards.english import FUNCTION_WORDS

if TYPE_CHECKING:
    from rouge_score_rs.rouge_scorer import RougeScorer

__all__ = ["Copying", "Overlap", "check_rouge", "copying", "near_share", "overlap"]

MAX_CHARS = 20_000
MAX_SENTENCES = 64  # longer texts are judged by their beginning

_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[a-z0-9]+")  # what ROUGE itself takes for a word


@dataclass(frozen=True)
class Overlap:
    """How a text and its source share content words, stemmed.

    Attributes:
        precision: Share of the text's words that the source has too, each as often as there.
        common: How many these are.
        source_words: How many the source has.
        order: Share of the common words that stand in the order of the source.
    """

    precision: float
    common: float
    source_words: int
    order: float


@dataclass(frozen=True)
class Copying:
    """How much of a text stands in another, word by word, function words included.

    Attributes:
        pairs: Share of its pairs of neighbouring words that the other has too.
        runs: Share of its runs of four words that the other has too.
        in_step: Share of its words that stand in the other in the same order, whatever lies
            between them.
    """

    pairs: float
    runs: float
    in_step: float


def check_rouge() -> None:
    """Make sure that ROUGE can be computed.

    Raises:
        MissingPackageError: If its package is not installed.
    """
    _scorers()


def overlap(text: str, source: str) -> Overlap:
    """Compare what a text says with what its source says.

    Raises:
        MissingPackageError: If the package of ROUGE is not installed.
    """
    content, source_content = _content(text), _content_of_source(source)
    scores = _scorers()[0].score(source_content, content)
    words, longest = scores["rouge1"], scores["rougeL"]
    size = source_content.count(" ") + 1
    return Overlap(
        precision=words.precision,
        common=words.recall * size,
        source_words=size,
        order=longest.precision / words.precision if words.precision else 0.0,
    )


def copying(text: str, other: str) -> Copying:
    """Compare a text with one that it must not copy.

    Raises:
        MissingPackageError: If the package of ROUGE is not installed.
    """
    scores = _scorers()[1].score(printable(other[:MAX_CHARS]), printable(text[:MAX_CHARS]))
    return Copying(
        pairs=scores["rouge2"].precision,
        runs=scores["rouge4"].precision,
        in_step=scores["rougeL"].precision,
    )


def near_share(text: str, source: str) -> float:
    """Return the share of a text's words that stand, in order, in one sentence of the source.

    Each sentence is compared with the source's nearest, so that a copy is seen whatever its
    sentences' order and whichever words were swapped.

    Raises:
        MissingPackageError: If the package of ROUGE is not installed.
    """
    known, scorer = _sentences(source), _scorers()[2]
    total = near = 0.0
    for sentence in _sentences(text):
        size = len(_WORD.findall(sentence))
        shares = (scorer.score(one, sentence)["rougeL"].precision for one in known)
        total += size
        near += size * max(shares, default=0.0)
    return near / total if total else 0.0


@lru_cache(maxsize=64)
def _sentences(text: str) -> tuple[str, ...]:
    # A text is met once, a source by every attempt at its task.
    parts = (part.lower() for part in _BREAK.split(printable(text[:MAX_CHARS])))
    return tuple(part for part in parts if _WORD.search(part))[:MAX_SENTENCES]


@lru_cache(maxsize=1)
def _scorers() -> "tuple[RougeScorer, RougeScorer, RougeScorer]":
    try:
        from rouge_score_rs.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingPackageError(
            "grounded rewards of writing need rouge-score-rs: pip install 'mlrl[tasks]', "
            'or pass reward="paper"'
        ) from error
    return (
        RougeScorer(["rouge1", "rougeL"], use_stemmer=True),
        RougeScorer(["rouge2", "rouge4", "rougeL"]),
        RougeScorer(["rougeL"]),
    )


@lru_cache(maxsize=4096)
def _content_of_source(source: str) -> str:
    return _content(source)


def _content(text: str) -> str:
    words = _WORD.findall(text[:MAX_CHARS].lower())
    return " ".join(word for word in words if len(word) > 1 and word not in FUNCTION_WORDS)
