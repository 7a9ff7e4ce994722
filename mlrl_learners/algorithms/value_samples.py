"""Values of a critic with their targets, which its loss and statistics are computed from."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mlrl_learners.algorithms.critic_inputs import Prompt
from mlrl_learners.engine import TokenRow
from mlrl_learners.types import AgentID

__all__ = ["ValueSample", "per_value", "value_weights"]

FIRST_TOKEN = (0,)  # any token: values are those before it


@dataclass(frozen=True, slots=True)
class ValueSample:
    """Values of a critic for an answer, and their targets: one, or one for each token.

    Attributes:
        agent: Agent whose return is estimated.
        prompt: Tokens that the critic read.
        old_values: Values at sampling time, V_old.
        targets: Value targets, in units of the return.
        node_weight: Weight of the node in the value loss.
        answer: Tokens before which the values are.
    """

    agent: AgentID
    prompt: Prompt
    old_values: tuple[float, ...]
    targets: tuple[float, ...]
    node_weight: float = 1.0
    answer: tuple[int, ...] = FIRST_TOKEN

    @property
    def row(self) -> TokenRow:
        """The prompt and the answer."""
        return TokenRow(self.prompt, self.answer)


def per_value(numbers: Sequence[float], samples: Sequence[ValueSample]) -> Tensor:
    """Repeat a number of each sample for its values, `[B] -> [T]`."""
    counts = torch.tensor([len(sample.targets) for sample in samples], dtype=torch.long)
    return torch.tensor(numbers).repeat_interleave(counts)


def value_weights(samples: Sequence[ValueSample]) -> Tensor:
    """Return the weight of each value: that of the node, divided among the answer's values, `[T]`.

    So the value loss is a mean over answers of the mean over the values of an answer.
    """
    return per_value([sample.node_weight / len(sample.targets) for sample in samples], samples)
