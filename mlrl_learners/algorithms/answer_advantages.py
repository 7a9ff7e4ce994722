"""Advantages of answers from the returns of their groups, for methods without a critic."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from mlrl_learners.algorithms.policy_gradient_options import BaselineOptions
from mlrl_learners.functional.advantages import group_advantages, pooled_deviation
from mlrl_learners.functional.grouping import group_keys, grouped_advantages, statistic_weights
from mlrl_learners.functional.reach import TurnWeights
from mlrl_learners.functional.returns import AnswerGroup
from mlrl_learners.functional.role_baseline import RoleBaseline
from mlrl_learners.types import AgentID, Rollout

__all__ = ["answer_advantages"]


def answer_advantages(
    groups: Sequence[AnswerGroup],
    rollouts: Sequence[Rollout],
    options: BaselineOptions,
    *,
    turn_weights: TurnWeights,
    role_baseline: RoleBaseline,
    agents: Collection[AgentID],
) -> list[tuple[AnswerGroup, list[float]]]:
    """Return the groups of the trained agents, and the advantage of each of their answers.

    Answers of other agents are in no statistics.

    Args:
        groups: All groups, from `rollout_groups`.
        rollouts: Rollouts of the groups.
        options: Baseline and scale.
        turn_weights: Weights of nodes.
        role_baseline: Averages of `role_ema`.
        agents: The trained agents.
    """
    mine = [group for group in groups if group.agent in agents]
    if options.group_by != "node":
        weights = statistic_weights(
            rollouts, options.weight_by, group_by=options.group_by, turn_weights=turn_weights
        )
        found = grouped_advantages(
            [group.returns for group in mine],
            group_keys(mine, options.group_by),
            [w for group, w in zip(groups, weights, strict=True) if group.agent in agents],
            normalize_std=options.normalize_std,
            epsilon=options.std_epsilon,
        )
        return list(zip(mine, found, strict=True))
    own = not options.normalize_std or turn_weights == "nodes"
    deviations = [None] * len(mine) if own else _pooled_deviations(mine)
    return [
        (
            group,
            group_advantages(
                group.returns,
                options.kind,
                normalize_std=options.normalize_std,
                deviation=deviation,
                epsilon=options.std_epsilon,
                role_baseline=role_baseline.of(group.agent),
            ),
        )
        for group, deviation in zip(mine, deviations, strict=True)
    ]


def _pooled_deviations(groups: Sequence[AnswerGroup]) -> list[float]:
    """Return the deviation of each group's rollout and agent, pooled over nodes."""
    by_key: dict[tuple[int, AgentID], list[AnswerGroup]] = defaultdict(list)
    for group in groups:
        by_key[group.rollout, group.agent].append(group)
    pooled = {
        key: pooled_deviation([each.returns for each in some], [each.weight for each in some])
        for key, some in by_key.items()
    }
    return [pooled[group.rollout, group.agent] for group in groups]
