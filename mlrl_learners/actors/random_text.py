"""Actor that writes random text, as a lower baseline."""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from mlrl_learners.types import AgentID, Completion

__all__ = ["RandomActor"]


class RandomActor:
    """Actor that writes up to 200 random characters.

    Args:
        seed: Seed of the text.
    """

    ALPHABET = "etaoin shrdlu\n()=:.,"

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose

    def act(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        *,
        num_samples: int = 1,
        explore: bool = True,  # noqa: ARG002 - there is no greedy answer
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Answer with random text, whatever the observations."""
        return [
            {agent: [Completion(self._text()) for _ in range(num_samples)] for agent in node}
            for node in observations
        ]

    @contextmanager
    def sampling_seed(self, seed: int) -> Iterator[None]:
        """Sample from `seed` inside the block, then restore the generator."""
        before = self._random
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        try:
            yield
        finally:
            self._random = before

    def _text(self) -> str:
        return "".join(self._random.choices(self.ALPHABET, k=self._random.randint(0, 200)))
