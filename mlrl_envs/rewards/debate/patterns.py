"""Case-insensitive regular expressions with a fast path for ASCII text.

Patterns must not contain capital letters.
"""

import re

__all__ = ["AnyCase"]


class AnyCase:
    """A regular expression that matches regardless of case.

    Args:
        pattern: The expression, without capital letters.
    """

    def __init__(self, pattern: str) -> None:
        self.small = re.compile(pattern)
        self.any = re.compile(pattern, re.IGNORECASE)

    def count(self, text: str) -> int:
        """Return the number of matches."""
        # Outside of ASCII a letter may have several lower-case forms, such as the Turkish I.
        return len(self.small.findall(text.lower()) if text.isascii() else self.any.findall(text))

    def is_in(self, text: str) -> bool:
        """Return whether the pattern matches anywhere."""
        found = self.small.search(text.lower()) if text.isascii() else self.any.search(text)
        return found is not None
