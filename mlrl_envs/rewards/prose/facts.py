"""Numbers and names of a text that its source lacks.

Each counts once, however often it is repeated. A few are forgiven, in proportion to the length of
the text, since people count, convert units and shorten names; each one more halves the score.

Only presence is compared: a number or a name that the source has in another role is supported. For
what is read see `mlrl_envs.rewards.prose.numbers` and `mlrl_envs.rewards.prose.names`.
"""

from mlrl_envs.rewards.prose.names import known_names, names_of
from mlrl_envs.rewards.prose.numbers import known_numbers, numbers_of
from mlrl_envs.rewards.prose.words import normalized, stem, words_of

__all__ = ["facts_score", "unsupported_facts"]


def unsupported_facts(text: str, source: str) -> list[str]:
    """Return the numbers and names of a text that its source lacks, in order of appearance."""
    text, source = normalized(text), normalized(source)
    numbers, names = known_numbers(source), known_names(source)
    found: dict[object, tuple[int, str]] = {}
    for number in numbers_of(text):
        if number.is_claim and not numbers.support(number):
            found.setdefault((number.values, number.unit), (number.start, number.shown))
    for name in names_of(text):
        if not names.support(name.shown):
            found.setdefault(stem(name.shown.lower()), (name.start, name.shown))
    return [shown for _, shown in sorted(found.values())]


def facts_score(text: str, source: str, *, forgiven: float) -> float:
    """Return 1 for a text with few unsupported facts for its length, half for each one more.

    Args:
        text: The text.
        source: What it retells.
        forgiven: Number of unsupported facts in 100 words that cost nothing.
    """
    excess = len(unsupported_facts(text, source)) - forgiven * len(words_of(text)) / 100.0
    return float(0.5 ** max(excess, 0.0))
