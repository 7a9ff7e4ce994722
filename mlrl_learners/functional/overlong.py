"""Reward term of long answers, without torch.

An answer of the largest length was cut off and earns what an unfinished answer earns. Without a
gradual term, the reward jumps by one token, and the group says little about length.

Source: soft overlong punishment (DAPO, arXiv 2503.14476, eq. 13).
"""

from mlrl_learners.errors import ConfigError

__all__ = ["overlong_term"]


def overlong_term(length: int, max_tokens: int, buffer: int) -> float:
    """Return the term that is added to the reward of an answer, in [-1, 0].

    With L the number of tokens, L_max the largest number and B the size of the buffer:

    - 0 up to L_max - B
    - (L_max - B - L) / B inside the buffer, which reaches -1 at L_max
    - -1 beyond L_max

    Args:
        length: L, at least 0.
        max_tokens: L_max, the token limit of sampling with the buffer included; 20480 in the paper.
        buffer: B, in [0, `max_tokens`]; 4096 in the paper. 0 gives 0 up to L_max.

    Raises:
        ConfigError: If `buffer` is outside its range.
    """
    if not 0 <= buffer <= max_tokens:
        raise ConfigError(f"buffer must be in [0, {max_tokens}], the token limit, got {buffer}")
    if length > max_tokens:
        return -1.0
    return -max(0, length - (max_tokens - buffer)) / buffer if buffer else 0.0
