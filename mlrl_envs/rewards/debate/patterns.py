"""Patterns that heed no case, at half of what the flag for it costs: ASCII texts are made small.

What it does not cover: patterns with capital letters.
"""

import re

__all__ = ["AnyCase"]


class AnyCase:
    """A pattern of small letters that finds capitals, too.

    Args:
        pattern: A regular expression; its only letters are small ones.
    """

    def __init__(self, pattern: str) -> None:
        self.small = re.compile(pattern)
        self.any = re.compile(pattern, re.IGNORECASE)

    def count(self, text: str) -> int:
        """Return how often the pattern occurs."""
        # Beyond ASCII a letter may have several small ones, as the Turkish I has.
        return len(self.small.findall(text.lower()) if text.isascii() else self.any.findall(text))

    def is_in(self, text: str) -> bool:
        """Return whether the pattern occurs."""
        found = self.small.search(text.lower()) if text.isascii() else self.any.search(text)
        return found is not None
