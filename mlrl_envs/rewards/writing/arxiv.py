"""Reward constants of `mlrl/arxiv-v0`: background, and methods with implications.

The formulas are in `mlrl_envs.rewards.writing.paper` and `mlrl_envs.rewards.writing.grounded`.
Division is how different the two texts are: the first should use words for what is known, open and
wanted, the second words for what is done, found and implied, and their content words should differ.
"""

from collections.abc import Sequence

from mlrl_envs.rewards.prose import FUNCTION_WORDS, WordCache, ramp, stem
from mlrl_envs.rewards.writing.grounded import JudgedText, WritingPart, WritingRules
from mlrl_envs.rewards.writing.paper import Levels, Trapezoid, jaccard

__all__ = ["LEVELS", "RULES"]

LEVELS = Levels(
    least_tokens=128,
    most_tokens=256,
    length=Trapezoid(0.8, 1.3, 1.6, 2.0),
    vocabulary=Trapezoid(0.5, 0.7, 1.3, 1.7),
    shared_full=0.23,
    reads_both=True,
)


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in text.split())


# Words that introductions use for the state of a field, and for the work itself.
_BACKGROUND = _stems(
    "attempt aim although attention background believed believe central challenge challenging "
    "complex concern controversial crucial debate debated decade decades difficult difficulty "
    "earlier essential established fundamental gap goal historically history important importance "
    "interest known lack largely limited literature little long mostly motivate motivated "
    "motivation necessary need needed often open poorly previous previously prior problem puzzle "
    "question remain remains researchers scientists serious studied traditional traditionally "
    "typically unclear understand understanding understood unknown usual usually view widely years"
)
_WORK = _stems(
    "agree algorithm analyse analyze analysis application applied apply approach author authors "
    "calculate calculated compare compared computed conclude confirm consequence construct data "
    "demonstrate derive derived develop developed employ estimate evaluate evidence examine "
    "experiment experiments find findings fit found future implication implications imply implies "
    "improve improves indicate introduce introduced investigate measure measured measurement "
    "method methodology methods model obtain obtained perform practice predict predicts procedure "
    "proof propose proposed prove proves record recorded result results reveal sample simulation "
    "show shows simulate suggest suggests support technique test tested train trained use used "
    "using validate"
)


_STEMS = WordCache(stem)


def _stance(found: Sequence[str]) -> float:
    # From -1, only words for the work, to 1, only words for the background.
    stems = set(map(_STEMS.__getitem__, found))
    background, work = len(stems & _BACKGROUND), len(stems & _WORK)
    return (background - work) / (background + work + 2)


def _roles(background: JudgedText, complementary: JudgedText) -> float:
    apart = _stance(background.words) - _stance(complementary.words)
    bags = (set(text.words) - FUNCTION_WORDS for text in (background, complementary))
    return ramp(apart, 0.0, 0.6) * ramp(jaccard(*bags), 0.6, 0.3)


# A background contains much that its abstract does not; two abstracts share at most 12 % of their
# content words (95th percentile).
RULES = WritingRules(
    parts=(
        WritingPart(
            weight=0.3,
            least_words=110,
            most_words=256,
            faith=(0.1, 0.55),
            phrases=0.07,
            coverage=50,
        ),
        WritingPart(
            weight=0.3,
            least_words=128,
            most_words=280,
            faith=(0.12, 0.7),
            phrases=0.15,
            coverage=80,
        ),
    ),
    length=LEVELS.length,
    division=_roles,
    kinds=4,
    reads_both=True,
)
