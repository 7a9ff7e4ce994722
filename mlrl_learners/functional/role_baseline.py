"""Moving average of the return of each role, as a baseline, without torch.

In a game the value of an agent's seat, such as moving first, is part of its returns. A role is an
agent, or an agent of one environment where a run has several (`AnswerGroup.role`). With b_i the
average of role i and R its mean return in an update:

    A = R(answer) - b_i,    then    m_i <- decay * m_i + (1 - decay) * R,
                                    b_i <- m_i / (1 - decay ** (number of updates with the role))

m_i starts at 0, and the divisor takes the weight of that start out (bias correction, as in Adam,
arXiv 1412.6980): b_i is a mean of returns, equally weighted at first. Before the first update of a
role b_i is 0. The baseline of an update does not contain returns of that update, so it adds no
bias.

Source: role-conditioned advantage estimation of SPIRAL (arXiv 2506.24119), with decay 0.95; there
b_i is m_i, and contains the return that it is subtracted from.
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
        values: Average b of each role that has been updated.
    """

    def __init__(self, decay: float) -> None:
        self._decay = decay
        self._weights: dict[str, float] = {}  # 1 - decay ** updates, of each role
        self.values: dict[str, float] = {}

    def of(self, role: str) -> float:
        """Return the baseline of a role."""
        return self.values.get(role, 0.0)

    def state_dict(self) -> dict[str, tuple[float, float]]:
        """Return the average of each role and the weight of its updates in m, in (0, 1]."""
        return {role: (value, self._weights[role]) for role, value in self.values.items()}

    def load_state_dict(self, state: Mapping[str, tuple[float, float]]) -> None:
        """Restore what `state_dict` returned."""
        self.values = {role: float(value) for role, (value, _) in state.items()}
        self._weights = {role: float(weight) for role, (_, weight) in state.items()}

    def add(self, groups: Sequence[AnswerGroup]) -> None:
        """Update the baselines with the returns of an update, weighted like the nodes."""
        sums: defaultdict[str, list[float]] = defaultdict(list)
        weights: defaultdict[str, list[float]] = defaultdict(list)
        for group in groups:
            sums[group.role] += (group.weight * value for value in group.returns)
            weights[group.role].append(group.weight * len(group.returns))
        for role, values in sums.items():
            mean = math.fsum(values) / math.fsum(weights[role])
            kept = self._decay * self._weights.get(role, 0.0)
            new = 1 - self._decay
            self.values[role] = (kept * self.of(role) + new * mean) / (kept + new)
            self._weights[role] = kept + new
