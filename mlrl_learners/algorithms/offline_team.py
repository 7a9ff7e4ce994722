"""Base class of learners that train on files: tokenization of texts, order of examples."""

import json
import warnings
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
    """Team that counts its updates, so that the order of examples continues after a resume.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all agents, or one per agent.
        config: Models, sampling and optimisation.
        seed: Seed of everything that is sampled, and of the order of examples.
        offline: Whether it trains on files, so that no episodes are collected.
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
        self._seed, self._updates, self._told_cut = seed, 0, False

    def save(self, path: Path) -> None:
        """Write the team and the number of its updates into the folder `path`."""
        super().save(path)
        state = {"updates": self._updates, "seed": self._seed}
        (path / STATE_FILE).write_text(json.dumps(state) + "\n")

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged, or does not fit this team.
        """
        super().load(path)
        try:
            state = json.loads((path / STATE_FILE).read_text())
            self._updates, self._seed = state["updates"], state["seed"]
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise CheckpointError(f"{str(path)!r} lacks the count of updates: {error}") from None

    def draw(self, num_examples: int, batch_size: int) -> list[int]:
        """Return the indices of this update's examples: shuffled epochs over all examples."""
        size = min(batch_size, num_examples)
        return task_indices(num_examples, size, self._updates, self._seed)

    def row_of_text(self, agent: AgentID, prompt: str, text: str, *, end: bool) -> TokenRow:
        """Return a prompt and its completion as tokens of an agent's model.

        Args:
            agent: Agent whose tokenizer and chat format are used.
            prompt: Observation, which the chat format turns into the prompt.
            text: Completion, truncated to `max_new_tokens` tokens; special tokens in it are
                tokenized as text.
            end: Append the end-of-turn token of the chat template, or the end-of-sequence token if
                the template has none.
        """
        policy = self.policies[self.policy_of[agent]]
        clean = text.encode("utf-8", "replace").decode()  # lone surrogates have no tokens
        ids: list[int] = policy.tokenizer(
            clean, add_special_tokens=False, split_special_tokens=True
        )["input_ids"]
        if end:
            ids = [*ids, policy.eos_ids[0] if policy.end_of_turn is None else policy.end_of_turn]
        limit = self.config.sampling.max_new_tokens
        if end and len(ids) > limit and not self._told_cut:
            self._told_cut = True
            warnings.warn(
                f"a text for {agent!r} has {len(ids)} tokens with its end, and sampling."
                f"max_new_tokens {limit} cuts it: such texts do not teach to end; raise it",
                RuntimeWarning,
                stacklevel=2,
            )
        tokens = tuple(ids[:limit])
        return TokenRow(tuple(self._formats[agent].encode(prompt)), tokens)
