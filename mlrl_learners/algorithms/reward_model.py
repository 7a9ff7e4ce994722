"""Reward model: a scalar head on a language model that scores joint answers.

It reads the observations and answers of all agents as one text, and is trained on pairs of joint
answers to the same prompts, one of which was preferred. If agents have different rewards, the text
ends with the agent whose reward is scored. Scores have no unit and no zero: only differences
between answers to the same prompts are meaningful.

Source: Bradley-Terry model of preferences, as in RLHF (arXiv 2203.02155, eq. 1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from mlrl_learners.algorithms.critic_inputs import joint_observation
from mlrl_learners.engine import TokenRow
from mlrl_learners.functional.losses import check_finite
from mlrl_learners.functional.preferences import preference_loss
from mlrl_learners.policies import (
    ChatFormat,
    Critic,
    OptimizerConfig,
    Policy,
    PolicyOptimizer,
    restore,
)
from mlrl_learners.policies.gradient_batches import gradient_batches
from mlrl_learners.processes.work_sharing import gather
from mlrl_learners.types import AgentID

__all__ = ["RewardModel", "TextPair", "joint_text"]

OPTIMIZER_FILE = "optimizer.pt"


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two joint answers to the same prompts, as texts of the reward model.

    Attributes:
        better: The preferred joint answer.
        worse: The other joint answer.
        gap: Return of the better minus that of the worse one, above 0.
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
    """Return all observations and then all answers as one text, in the order of agents.

    Args:
        observations: Observation of each agent.
        answers: Answer of each agent.
        agents: Every agent, in order.
        paid: Agent whose reward is scored, named at the end of the text; None for the team.
    """
    answered = [f"[{agent}] answers:\n{answers[agent]}" for agent in agents if agent in answers]
    question = [] if paid is None else [f"The pay of [{paid}]:"]
    return "\n\n".join([joint_observation(observations, agents), *answered, *question])


class RewardModel:
    """Model that scores joint answers and is trained on preferences between them.

    The head starts at zero, so that all scores are equal before the first step.

    Args:
        trunk: Model under the head, used by the reward model alone.
        optimizer: Options of the optimizer.
        micro_batch_tokens: Largest number of tokens per forward pass.
        label_smoothing: Probability that a preference label is wrong, in [0, 0.5).
    """

    def __init__(
        self,
        trunk: Policy,
        optimizer: OptimizerConfig,
        *,
        micro_batch_tokens: int,
        label_smoothing: float = 0.0,
    ) -> None:
        # A bias cancels in every pair: its gradient is rounding error, which Adam would amplify.
        self._critic = Critic(trunk, 1, owns_trunk=True, bias=False)
        self._optimizer = PolicyOptimizer(
            self._critic.parameters(), optimizer, trunk.new_loss_scale()
        )
        self._format = ChatFormat(trunk.tokenizer, None, trunk.max_positions)
        self._micro_batch_tokens, self._smoothing = micro_batch_tokens, label_smoothing

    def scores(self, texts: Sequence[str]) -> list[float]:
        """Return the score of each joint answer; equal texts are evaluated once."""
        unique = list(dict.fromkeys(texts))
        rows = self._rows(unique)
        found: dict[int, float] = {}
        with torch.no_grad():
            for batch in self._critic.trunk.micro_batches(rows, self._micro_batch_tokens):
                values = self._critic.values([rows[i].prompt_ids for i in batch])[:, 0]
                found |= zip(batch, values.tolist(), strict=True)
        score_of = {unique[i]: score for i, score in gather(found).items()}
        return [score_of[text] for text in texts]

    def accuracy(self, pairs: Sequence[TextPair]) -> float:
        """Return the fraction of pairs that it ranks correctly, in [0, 1]; ties count half."""
        scores = self.scores([text for pair in pairs for text in (pair.better, pair.worse)])
        margins = [b - w for b, w in zip(scores[::2], scores[1::2], strict=True)]
        return sum((margin > 0) + 0.5 * (margin == 0) for margin in margins) / len(margins)

    def learn(self, pairs: Sequence[TextPair], epochs: int) -> dict[str, float]:
        """Take one optimizer step per epoch on the mean of -log sigmoid(r(better) - r(worse)).

        All scores r are computed first without a gradient; the derivative dL/dr of each score then
        weights it in its micro-batch. The gradient does not depend on the micro-batches.

        Args:
            pairs: Preferences, P of them.
            epochs: Passes over the pairs.

        Returns:
            `loss`, `grad_norm` and `lr` of the last step.

        Raises:
            NumericsError: If a loss or gradient is not finite.
        """
        texts = list(dict.fromkeys(text for pair in pairs for text in (pair.better, pair.worse)))
        rows = self._rows(texts)
        index = {text: number for number, text in enumerate(texts)}
        sides = torch.tensor([[index[pair.better], index[pair.worse]] for pair in pairs])  # [P, 2]
        metrics: dict[str, float] = {}
        for _ in range(epochs):
            scores = torch.tensor(self.scores(texts), dtype=torch.float64, requires_grad=True)
            margins = scores[sides[:, 0]] - scores[sides[:, 1]]
            loss = preference_loss(margins, beta=1.0, label_smoothing=self._smoothing).mean()
            metrics = {"loss": check_finite(loss, "reward_model"), "lr": self._optimizer.lr}
            (slopes,) = torch.autograd.grad(loss, scores)
            self._optimizer.clear()
            for _, batch in gradient_batches(
                self._critic.trunk, rows, self._micro_batch_tokens, [self._optimizer]
            ):
                values = self._critic.values([rows[i].prompt_ids for i in batch])[:, 0]
                self._optimizer.backward((values * slopes[batch].to(values)).sum())
            metrics["grad_norm"] = self._optimizer.step()
        return metrics | self._optimizer.scale.metrics("")

    def save(self, folder: Path) -> None:
        """Write the model, its head and its optimizer into a folder."""
        self._critic.save(folder)
        torch.save(self._optimizer.state_dict(), folder / OPTIMIZER_FILE)

    def load(self, folder: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged, or does not fit this model.
        """
        self._critic.load(folder)
        restore(folder / OPTIMIZER_FILE, self._optimizer.load_state_dict)

    def _rows(self, texts: Sequence[str]) -> list[TokenRow]:
        return [TokenRow(tuple(self._format.encode(text)), (0,)) for text in texts]
