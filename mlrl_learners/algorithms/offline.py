"""What learners share that may learn from files: tokens of texts, and an order that is kept."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlrl_learners.algorithms.team import Team, TeamConfig
from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import CheckpointError
from mlrl_learners.policies import ModelSource
from mlrl_learners.seeding import task_indices
from mlrl_learners.types import AgentID

__all__ = ["OfflineTeam"]

STATE_FILE = "offline.json"


class OfflineTeam(Team):
    """A team that counts its updates, so that what it draws from files goes on after a resume.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all, or one an agent.
        config: Models, sampling, optimisation.
        seed: Decides everything that is sampled, and the order of what is drawn.
        offline: Whether it learns from files, so that no episode need be played.
    """

    def __init__(
        self,
        agents: Sequence[AgentID],
        model: ModelSource | Mapping[AgentID, ModelSource],
        config: TeamConfig,
        seed: int,
        *,
        offline: bool,
    ) -> None:
        super().__init__(agents, model, config, seed)
        self.offline = offline
        self._seed, self._updates = seed, 0

    def save(self, path: Path) -> None:
        """Write what a team writes, and how many updates were made."""
        super().save(path)
        state = {"updates": self._updates, "seed": self._seed}
        (path / STATE_FILE).write_text(json.dumps(state) + "\n")

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If it is missing, damaged, or of another team or model.
        """
        super().load(path)
        try:
            state = json.loads((path / STATE_FILE).read_text())
            self._updates, self._seed = state["updates"], state["seed"]
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise CheckpointError(f"{str(path)!r} lacks the count of updates: {error}") from None

    def draw(self, num_examples: int, batch_size: int) -> list[int]:
        """Return the examples of this update: all of them once, then again in another order."""
        size = min(batch_size, num_examples)
        return task_indices(num_examples, size, self._updates, self._seed)

    def row_of_text(self, agent: AgentID, read: str, written: str, *, end: bool) -> TokenRow:
        """Return the tokens of a prompt and of what follows, at most `max_new_tokens` of these.

        Args:
            agent: Whose model and format.
            read: What becomes the prompt.
            written: What follows; what looks like a special token in it is text.
            end: Whether what ends a turn in the model's chat template follows (without one, the
                end of sequence); nothing may be left without.
        """
        policy = self.policies[self.policy_of[agent]]
        clean = written.encode("utf-8", "replace").decode()  # lone surrogates have no tokens
        ids: list[int] = policy.tokenizer(
            clean, add_special_tokens=False, split_special_tokens=True
        )["input_ids"]
        if end:
            ids = [*ids, policy.eos_ids[0] if policy.end_of_turn is None else policy.end_of_turn]
        tokens = tuple(ids[: self.config.max_new_tokens])
        return TokenRow(tuple(self._formats[agent].encode(read)), tokens)
