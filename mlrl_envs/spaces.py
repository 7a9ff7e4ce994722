"""The space of any text a model can read or write.

`gymnasium.spaces.Text` enumerates its alphabet; over all of Unicode that costs 100 MB and seconds.
Here the alphabet is virtual: a text belongs to the space if it is short enough and has a UTF-8
form (lone surrogates have none). Samples are short and printable, for tests of environments.
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
    """Return whether `text` has a UTF-8 form, that is, holds no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class UnicodeText(Text):
    """Every `str` of at most `max_length` characters that has a UTF-8 form.

    Args:
        max_length: Longest text, in characters, inclusive.
        min_length: Shortest text, inclusive.
        seed: Seed of the sampler.
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
        # The tables of the parent class, built once for all spaces: they only serve `sample`.
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
        """Draw a short printable text; `mask` and `probability` are over `SAMPLE_ALPHABET`."""
        if mask is not None or probability is not None:
            return super().sample(self._with_length(mask), self._with_length(probability))
        indices = self.np_random.integers(0, len(_CHAR_LIST), size=self._sample_length())
        return "".join(_CHAR_LIST[index] for index in indices)

    def contains(self, x: object) -> bool:
        """Return whether `x` is a `str` of fitting length that has a UTF-8 form."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length and is_unicode(x)

    @property
    def is_np_flattenable(self) -> bool:
        """False: a virtual alphabet has no indices to flatten to."""
        return False

    def _sample_length(self) -> int:
        longest = max(self.min_length, min(self.max_length, MAX_SAMPLE_CHARS))
        return int(self.np_random.integers(self.min_length, longest + 1))

    def _with_length(self, mask: Any) -> Any:  # noqa: ANN401  Gymnasium leaves its masks open
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
        clone = copy.copy(self)
        clone._np_random = copy.deepcopy(self._np_random, memo)  # noqa: SLF001  our own clone
        return clone
