"""Rows of a forward pass that computes log-probabilities: a prompt and its completion."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlrl_learners.types import Completion, Nucleus

__all__ = ["TokenRow"]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A prompt and a completion without padding; both hold at least one token.

    Attributes:
        prompt_ids: Token ids of the prompt.
        token_ids: Token ids of the completion.
        nucleus: Nuclei that log-probabilities are renormalised over; None for the whole vocabulary.
            Ignored in comparisons.
    """

    prompt_ids: Sequence[int]
    token_ids: Sequence[int]
    nucleus: Nucleus | None = field(default=None, compare=False, hash=False, repr=False)

    @classmethod
    def sampled(cls, completion: Completion) -> "TokenRow":
        """Return the row of a completion, with the nuclei it was sampled from."""
        return cls(completion.prompt_ids, completion.token_ids, completion.nucleus)

    @property
    def num_tokens(self) -> int:
        """Number of tokens that a forward pass reads: nothing follows the last one."""
        return len(self.prompt_ids) + len(self.token_ids) - 1

    def tokens(self) -> tuple[int, ...]:
        """Return the tokens that a forward pass reads."""
        return (*self.prompt_ids, *self.token_ids[:-1])
