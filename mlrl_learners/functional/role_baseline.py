"""Moving average of the return of each role, as a baseline, without torch.

In a game the value of an agent's seat, such as moving first, is part of its returns. A role is an
agent, or an agent of one environment where a run has several (`AnswerGroup.role`). With b_i the
average of role i and R its mean return in an update:

    A = R(answer) - b_i,    then    b_i <- decay * b_i + (1 - decay) * R

Before the first update of a role b_i is 0, after it b_i is its R. The baseline of an update does
not contain returns of that update, so it adds no bias.

Source: role-conditioned advantage estimation of SPIRAL (arXiv 2506.24119), with decay 0.95; there
b_i starts at 0, and contains the return that it is subtracted from.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from mlrl_learners.functional.returns import AnswerGroup

__all__ = ["RoleBaseline"]


class RoleBaseline:
    """Baseline of each role.

    Args:
        decay: Weight of the average before an update, in [0, 1).

    Attributes:
        values: Average of each role that has been updated.
    """

    def __init__(self, decay: float) -> None:
        self._decay = decay
        self.values: dict[str, float] = {}

    def of(self, role: str) -> float:
        """Return the baseline of a role."""
        return self.values.get(role, 0.0)

    def load(self, values: Mapping[str, float]) -> None:
        """Restore the averages."""
        self.values = {role: float(value) for role, value in values.items()}

    def add(self, groups: Sequence[AnswerGroup]) -> None:
        """Update the baselines with the returns of an update, weighted like the nodes."""
        sums: defaultdict[str, list[float]] = defaultdict(list)
        weights: defaultdict[str, list[float]] = defaultdict(list)
        for group in groups:
            sums[group.role] += (group.weight * value for value in group.returns)
            weights[group.role].append(group.weight * len(group.returns))
        for role, values in sums.items():
            mean = math.fsum(values) / math.fsum(weights[role])
            before = self.values.get(role, mean)
            self.values[role] = self._decay * before + (1 - self._decay) * mean
