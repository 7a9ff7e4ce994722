"""Space of Unicode texts.

`gymnasium.spaces.Text` enumerates its alphabet, which takes 100 MB and several seconds for all of
Unicode. This space does not: it contains every text of a permitted length that can be encoded as
UTF-8 (lone surrogates cannot). Samples are short and printable.
"""

import copy
from typing import Any

import numpy as np
from gymnasium.spaces import Space, Text
from numpy.typing import NDArray

__all__ = ["UnicodeText", "is_unicode"]

SAMPLE_ALPHABET = "".join(map(chr, range(32, 127))) + "\nñλ中🙂"
MAX_SAMPLE_CHARS = 64

_CHAR_SET = frozenset(SAMPLE_ALPHABET)
_CHAR_LIST = tuple(SAMPLE_ALPHABET)
_CHAR_INDEX = {char: np.int32(index) for index, char in enumerate(_CHAR_LIST)}
_CHAR_STRING = "".join(sorted(SAMPLE_ALPHABET))


def is_unicode(text: str) -> bool:
    """Return whether `text` can be encoded as UTF-8, that is, has no lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class UnicodeText(Text):
    """All texts of at most `max_length` characters that can be encoded as UTF-8.

    Args:
        max_length: Maximum length in characters, inclusive.
        min_length: Minimum length in characters, inclusive.
        seed: Seed of `sample`.
    """

    def __init__(
        self,
        max_length: int = 1_000_000,
        *,
        min_length: int = 0,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if not 0 <= min_length <= max_length:
            raise ValueError(f"need 0 <= min_length <= max_length, got {min_length}, {max_length}")
        self.min_length = min_length
        self.max_length = max_length
        # Tables that `sample` of the parent class reads; all spaces share them.
        self._char_set = _CHAR_SET
        self._char_list = _CHAR_LIST
        self._char_index = _CHAR_INDEX
        self._char_str = _CHAR_STRING
        Space.__init__(self, dtype=str, seed=seed)

    def sample(
        self,
        mask: tuple[int | None, NDArray[np.int8] | None] | None = None,
        probability: tuple[int | None, NDArray[np.float64] | None] | None = None,
    ) -> str:
        """Return a short printable text; `mask` and `probability` are over `SAMPLE_ALPHABET`."""
        if mask is not None or probability is not None:
            return super().sample(self._with_length(mask), self._with_length(probability))
        indices = self.np_random.integers(0, len(_CHAR_LIST), size=self._sample_length())
        return "".join(_CHAR_LIST[index] for index in indices)

    def contains(self, x: object) -> bool:
        """Return whether `x` is a `str` of a permitted length that can be encoded as UTF-8."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length and is_unicode(x)

    @property
    def is_np_flattenable(self) -> bool:
        """False, because the alphabet is not enumerated."""
        return False

    def _sample_length(self) -> int:
        longest = max(self.min_length, min(self.max_length, MAX_SAMPLE_CHARS))
        return int(self.np_random.integers(self.min_length, longest + 1))

    def _with_length(self, mask: Any) -> Any:  # noqa: ANN401  masks are untyped in Gymnasium
        if mask is None or mask[0] is not None:
            return mask
        return self._sample_length(), mask[1]

    def __repr__(self) -> str:
        return f"UnicodeText({self.min_length}, {self.max_length})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UnicodeText)
            and self.min_length == other.min_length
            and self.max_length == other.max_length
        )

    def __hash__(self) -> int:
        return hash((type(self), self.min_length, self.max_length))

    def __deepcopy__(self, memo: dict[int, object]) -> "UnicodeText":
        clone = object.__new__(type(self))  # copy.copy would pickle
        clone.__dict__.update(self.__dict__)
        memo[id(self)] = clone
        clone._np_random = copy.deepcopy(self._np_random, memo)
        return clone
