"""A reward model: a scalar head on a language model that says how good a joint answer is.

It reads what all agents read and what all of them wrote, as one text, and learns from pairs of
joint answers to the same prompts of which one was preferred. Where agents are not paid alike, the
text ends with whose pay is judged. Its scores have no unit and no zero:
only what they differ by, between answers to the same prompts, has been learnt.

Source: the model of preferences is Bradley and Terry's, as in RLHF (arXiv 2203.02155).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from mlrl_learners.algorithms.critic_inputs import joint_observation
from mlrl_learners.algorithms.policy_gradient import check_finite
from mlrl_learners.engine import TokenRow
from mlrl_learners.functional.preferences import preference_loss
from mlrl_learners.policies import (
    ChatFormat,
    Critic,
    OptimizerConfig,
    Policy,
    PolicyOptimizer,
    restore,
)
from mlrl_learners.processes.work_sharing import gather
from mlrl_learners.types import AgentID

__all__ = ["RewardModel", "TextPair", "joint_text"]

OPTIMIZER_FILE = "optimizer.pt"


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two joint answers to the same prompts as the reward model reads them.

    Attributes:
        better: The one that was preferred.
        worse: The other one.
        gap: How much more the better one earned, above 0.
    """

    better: str
    worse: str
    gap: float


def joint_text(
    observations: Mapping[AgentID, str],
    answers: Mapping[AgentID, str],
    agents: Sequence[AgentID],
    paid: AgentID | None = None,
) -> str:
    """Return what all agents read, and then what they wrote, as one text in the order of agents.

    Args:
        observations: What each agent read.
        answers: What each agent wrote.
        agents: Every agent, in order.
        paid: Whose pay is judged, which the text then ends with; None for the team's.
    """
    written = [f"[{agent}] answers:\n{answers[agent]}" for agent in agents if agent in answers]
    judged = [] if paid is None else [f"The pay of [{paid}]:"]
    return "\n\n".join([joint_observation(observations, agents), *written, *judged])


class RewardModel:
    """Scores joint answers, and learns from preferences between them.

    The head starts at zero: before the first lesson all answers are worth the same.

    Args:
        trunk: The model under the head; it is the reward model's own.
        optimizer: How gradients become steps.
        micro_batch_tokens: Most tokens of one forward pass.
        label_smoothing: Chance that a preference was told the wrong way round, in [0, 0.5).
    """

    def __init__(
        self,
        trunk: Policy,
        optimizer: OptimizerConfig,
        *,
        micro_batch_tokens: int,
        label_smoothing: float = 0.0,
    ) -> None:
        # A bias would cancel in every pair: its gradient is rounding, which Adam makes steps of.
        self._critic = Critic(trunk, 1, owns_trunk=True, bias=False)
        self._optimizer = PolicyOptimizer(self._critic.parameters(), optimizer)
        self._format = ChatFormat(trunk.tokenizer, None, trunk.max_positions)
        self._micro_batch_tokens, self._smoothing = micro_batch_tokens, label_smoothing

    def scores(self, texts: Sequence[str]) -> list[float]:
        """Return how good each joint answer is; equal texts are read once."""
        unique = list(dict.fromkeys(texts))
        rows = self._rows(unique)
        found: dict[int, float] = {}
        with torch.no_grad():
            for batch in self._micro_batches(rows):
                values = self._critic.values([rows[i].prompt_ids for i in batch])[:, 0]
                found |= zip(batch, values.tolist(), strict=True)
        score_of = {unique[i]: score for i, score in gather(found).items()}
        return [score_of[text] for text in texts]

    def accuracy(self, pairs: Sequence[TextPair]) -> float:
        """Return which share of pairs it ranks as they were; a tie counts half."""
        scores = self.scores([text for pair in pairs for text in (pair.better, pair.worse)])
        margins = [b - w for b, w in zip(scores[::2], scores[1::2], strict=True)]
        return sum((margin > 0) + 0.5 * (margin == 0) for margin in margins) / len(margins)

    def learn(self, pairs: Sequence[TextPair], epochs: int) -> dict[str, float]:
        """Take an optimizer step an epoch on -log sigmoid(r(better) - r(worse)), the mean of pairs.

        Scores come first, without a gradient; dL/dr of each then weighs it in its micro-batch,
        which is the same gradient whatever is computed together.

        Returns:
            `loss`, `grad_norm` and `lr` of the last step.

        Raises:
            NumericsError: If a loss or gradient is not finite.
        """
        texts = list(dict.fromkeys(text for pair in pairs for text in (pair.better, pair.worse)))
        rows = self._rows(texts)
        place = {text: number for number, text in enumerate(texts)}
        sides = torch.tensor([[place[pair.better], place[pair.worse]] for pair in pairs])  # [P, 2]
        metrics: dict[str, float] = {}
        for _ in range(epochs):
            scores = torch.tensor(self.scores(texts), dtype=torch.float64, requires_grad=True)
            margins = scores[sides[:, 0]] - scores[sides[:, 1]]
            loss = preference_loss(margins, beta=1.0, label_smoothing=self._smoothing).mean()
            metrics = {"loss": check_finite(loss, "reward_model"), "lr": self._optimizer.lr}
            (slopes,) = torch.autograd.grad(loss, scores)
            self._optimizer.clear()
            for batch in self._micro_batches(rows):
                values = self._critic.values([rows[i].prompt_ids for i in batch])[:, 0]
                (values * slopes[batch].to(values)).sum().backward()
            metrics["grad_norm"] = self._optimizer.step()
        return metrics

    def save(self, folder: Path) -> None:
        """Write the model, its head and its optimizer into a folder."""
        self._critic.save(folder)
        torch.save(self._optimizer.state_dict(), folder / OPTIMIZER_FILE)

    def load(self, folder: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If it is missing, damaged, or of another model.
        """
        self._critic.load(folder)
        restore(folder / OPTIMIZER_FILE, self._optimizer.load_state_dict)

    def _rows(self, texts: Sequence[str]) -> list[TokenRow]:
        return [TokenRow(tuple(self._format.encode(text)), (0,)) for text in texts]

    def _micro_batches(self, rows: Sequence[TokenRow]) -> list[list[int]]:
        return list(self._critic.trunk.micro_batches(rows, self._micro_batch_tokens))
