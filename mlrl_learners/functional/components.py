"""Advantages from the named parts of a reward, each normalised by itself, without torch.

If parts are summed first, one deviation is divided by for all: a part that varies much hides the
others, and different combinations of parts with equal sums have equal advantages.

Source: GDPO (arXiv 2601.05242, section 3).
"""

import math
from collections.abc import Mapping, Sequence

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.advantages import group_advantages, normalize
from mlrl_learners.functional.credit import with_rewards
from mlrl_learners.types import Rollout

__all__ = ["component_advantages", "component_rewards", "decoupled_advantages"]


def component_rewards(rollout: Rollout, name: str) -> Rollout:
    """Return a rollout whose rewards are one named part of them; 0 where a reward lacks it.

    Its returns are those of the part. Terms that a learner adds to rewards are in no part.

    Args:
        rollout: The rollout; it is not modified.
        name: Name of the part in `JointStep.components`.
    """
    return with_rewards(
        rollout,
        lambda _, step, agent: float(step.components.get(agent, {}).get(name, 0.0)),
    )


def component_advantages(
    returns: Mapping[str, Sequence[float]], weights: Mapping[str, float], *, epsilon: float = 1e-4
) -> list[float]:
    """Return the weighted sum of the parts' advantages for each answer of a group.

    The advantage of a part is (R - mean(R)) / (std(R) + epsilon), as in GRPO; it is 0 if all
    answers have the same R.

    Args:
        returns: Return of each answer for each part.
        weights: Weight of each part; parts without a weight have weight 1.
        epsilon: Constant added to the standard deviations, above 0.

    Raises:
        ConfigError: If a weight is for a part that the returns do not have.
        NumericsError: If a return is not finite.
    """
    unknown = sorted(set(weights) - set(returns))
    if unknown:
        raise ConfigError(f"no reward component {unknown[0]!r}; there are {sorted(returns)}")
    parts = {
        name: group_advantages(values, "mean", normalize_std=True, epsilon=epsilon)
        for name, values in returns.items()
    }
    return [
        math.fsum(weights.get(name, 1.0) * part for name, part in zip(parts, row, strict=True))
        for row in zip(*parts.values(), strict=True)
    ]


def decoupled_advantages(
    groups: Sequence[Mapping[str, Sequence[float]]],
    weights: Mapping[str, float],
    answer_weights: Sequence[float] | None = None,
    *,
    epsilon: float = 1e-4,
) -> list[list[float]]:
    """Return `component_advantages` of each group, normalised over all answers of the update.

    The second normalisation keeps the size of advantages independent of the number of parts.

    Args:
        groups: Returns of the answers of each group, by part.
        weights: Weight of each part.
        answer_weights: Weight of each answer in the second mean and deviation, the groups one
            after the other; 1 by default.
        epsilon: Constant added to the standard deviations of groups, above 0.

    Raises:
        ConfigError: If a weight is for a part that a group does not have.
        NumericsError: If a return is not finite.
    """
    sums = [component_advantages(group, weights, epsilon=epsilon) for group in groups]
    scaled = iter(normalize([value for group in sums for value in group], answer_weights))
    return [[next(scaled) for _ in group] for group in sums]
