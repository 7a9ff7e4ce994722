"""Combination of text scorers: the lowest score counts.

Scorers have different blind spots: likelihood cannot see praise or other topics, relevance cannot
see copies of pieces. A text must pass all of them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.types import TextScorer, TextToScore

__all__ = ["WeakestScorer"]


@dataclass(frozen=True)
class WeakestScorer:
    """The minimum of the scores of several scorers.

    Attributes:
        scorers: At least one scorer. `as_scorer` builds them from their descriptions.
    """

    scorers: Sequence[TextScorer]

    def __post_init__(self) -> None:
        """Check that there is a scorer.

        Raises:
            InvalidArgumentError: If there is none.
        """
        if not isinstance(self.scorers, list | tuple) or not self.scorers:
            raise InvalidArgumentError(f"scorers must be a list of scorers, got {self.scorers!r}")
        object.__setattr__(self, "scorers", tuple(self.scorers))

    @property
    def fingerprint(self) -> str:
        """SHA-256 hash of the fingerprints of the scorers."""
        found = " ".join(each.fingerprint for each in self.scorers)
        return hashlib.sha256(f"weakest {found}".encode()).hexdigest()

    def score_many(self, batch: Sequence[TextToScore]) -> list[float]:
        """Return the lowest score of each text.

        Raises:
            InfraError: If one of the scorers fails.
        """
        found = [each.score_many(batch) for each in self.scorers]
        return [min(scores) for scores in zip(*found, strict=True)]
