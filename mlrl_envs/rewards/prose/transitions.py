"""Stop words and twelve categories of transitions of the published writing reward.

The lists are taken from the release of the formula (`rewards/tldr_rewards.py` of
OpenMLRL/LLM_Collab_Writing, the same for both tasks), because its scores depend on them. Grounded
rewards match the same phrases as whole words, without a few that do not link sentences.
"""

from collections.abc import Sequence

__all__ = [
    "CATEGORIES",
    "LINK_HEADS",
    "STOP_WORDS",
    "find_transitions",
    "match_transitions",
    "opens_with_transition",
]

_STOP_WORDS = (
    "a all also an and any are as at bad be been being both but by can could did do does each "
    "few first for from good great had has have he her here him his how i if in is it its just "
    "last left little long low many may me might more most much must my new no not now of old "
    "on only or other our own right same shall should so some such than that the their them "
    "then there these they this those to too us very was we were what when where which who why "
    "will with would you your"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())

_PHRASES = {
    "elaboration": (
        "additionally, along with, also, analogously, as well as, besides, by the same token, "
        "comparatively, correspondingly, coupled with, equally important, furthermore, in "
        "addition, in like manner, in the same way, likewise, moreover, not only, similarly, "
        "together with, what is more"
    ),
    "example": (
        "above all, as an illustration, as evidence, case in point, chiefly, especially, for "
        "example, for instance, in particular, including, mainly, markedly, most importantly, "
        "namely, notably, particularly, primarily, specifically, such as, to demonstrate, to "
        "exemplify, to illustrate"
    ),
    "explanation": (
        "actually, at its core, basically, clearly, essentially, fundamentally, in essence, in "
        "fact, in other words, indeed, more precisely, obviously, simply put, specifically "
        "speaking, stated differently, that is, the point is, to clarify, to put it another way, "
        "to put it simply, to rephrase, what this means is"
    ),
    "cause and effect": (
        "accordingly, as a consequence, as a result, because of this, consequently, due to this, "
        "ergo, for this reason, hence, in consequence, it follows that, on account of, owing to, "
        "resulting from, so, thanks to, then, thence, thereby, therefore, this brings about, this "
        "causes, this leads to, this results in, thus, wherefore"
    ),
    "contrast": (
        "all the same, alternatively, although, at any rate, be that as it may, but, by contrast, "
        "contrarily, conversely, despite this, even so, even though, however, in any case, in "
        "contrast, in opposition, instead, nevertheless, nonetheless, notwithstanding, on the "
        "contrary, on the other hand, otherwise, rather, regardless, still, whereas, while, yet"
    ),
    "sequence": (
        "after that, afterward, at first, at the outset, at the same time, concurrently, finally, "
        "first, following this, in conclusion, in summary, in the beginning, in the end, in the "
        "meantime, initially, lastly, later, later on, meanwhile, next, primarily, second, "
        "secondly, simultaneously, subsequently, then, third, thirdly, to begin with, to "
        "conclude, to start with, to summarize, ultimately"
    ),
    "emphasis": (
        "absolutely, admittedly, as a matter of fact, certainly, clearly, definitely, evidently, "
        "granted, in fact, indeed, indubitably, manifestly, naturally, notably, obviously, of "
        "course, positively, significantly, surely, to be sure, undeniably, undoubtedly, "
        "unquestionably, without doubt"
    ),
    "summary": (
        "after all, all in all, basically, briefly, essentially, fundamentally, in brief, in "
        "conclusion, in essence, in short, in summary, in the end, in the final analysis, on the "
        "whole, overall, the bottom line is, to conclude, to sum up, to summarize, ultimately, "
        "when all is said and done"
    ),
    "comparison": (
        "along the same lines, analogously, as with, by analogy, by the same token, comparable "
        "to, correspondingly, equally, in comparison, in like manner, in similar fashion, in the "
        "same way, just as, just like, likewise, much like, similarly"
    ),
    "concession": (
        "admittedly, all the same, although, be that as it may, despite, even if, even though, "
        "granted, however, in spite of, nevertheless, nonetheless, notwithstanding, regardless "
        "of, still, though, whereas, while, yet"
    ),
    "condition": (
        "as long as, assuming that, even if, given that, had, if, in case, in the event that, on "
        "condition that, only if, or else, otherwise, provided that, should, so long as, "
        "supposing that, unless, were, whether or not"
    ),
    "time": (
        "after, afterward, as, at the same time, before, concurrently, currently, during, "
        "earlier, eventually, finally, formerly, immediately, lately, later, meanwhile, nowadays, "
        "presently, previously, recently, simultaneously, since, subsequently, until, when, while"
    ),
}
CATEGORIES = {name: tuple(text.split(", ")) for name, text in _PHRASES.items()}

# More often a verb, a preposition or a number than a link between sentences.
_NO_LINKS = frozenset(
    ("as", "as with", "during", "first", "granted", "had", "next", "rather", "second", "should")
) | frozenset(("since", "so", "still", "such as", "that is", "third", "until", "were"))
_LINKS = {
    phrase: {name for name, phrases in CATEGORIES.items() if phrase in phrases}
    for phrases in CATEGORIES.values()
    for phrase in phrases
    if phrase not in _NO_LINKS
}
LINK_HEADS = frozenset(phrase.split()[0] for phrase in _LINKS)
# Phrases of several words as lists of words, by their first two words, longest first.
_LONGER: dict[tuple[str, str], list[list[str]]] = {}
for _phrase in sorted((phrase.split() for phrase in _LINKS if " " in phrase), key=len):
    _LONGER.setdefault((_phrase[0], _phrase[1]), []).insert(0, _phrase)


def match_transitions(text: str) -> set[str]:
    """Return the categories found by the published reward: anywhere, even inside a word."""
    lower = text.lower()
    return {
        name for name, phrases in CATEGORIES.items() if any(phrase in lower for phrase in phrases)
    }


def find_transitions(words: Sequence[str]) -> tuple[set[str], int]:
    """Return the categories found among whole words, and the number of words of their phrases.

    Args:
        words: The lower-case words of a text, in order.
    """
    found: set[str] = set()
    taken = 0
    for place in [place for place, word in enumerate(words) if word in LINK_HEADS]:
        phrase = _link_at(words, place)
        if phrase:
            found |= _LINKS[phrase]
            taken += phrase.count(" ") + 1
    return found, taken


def opens_with_transition(words: Sequence[str]) -> bool:
    """Return whether a sentence, given as lower-case words, begins with a transition."""
    return bool(words) and _link_at(words, 0) is not None


def _link_at(words: Sequence[str], place: int) -> str | None:
    """Return the longest phrase at a position."""
    pair = (words[place], words[place + 1] if place + 1 < len(words) else "")
    for phrase in _LONGER.get(pair, ()):
        if list(words[place : place + len(phrase)]) == phrase:
            return " ".join(phrase)
    return words[place] if words[place] in _LINKS else None
