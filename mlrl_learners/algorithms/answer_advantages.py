"""Advantages of answers from the returns of their groups, for methods without a critic.

`with_token_charges` is for methods with a critic as well.
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mlrl_learners.algorithms.policy_gradient_options import BaselineOptions
from mlrl_learners.algorithms.policy_update import AnswerT
from mlrl_learners.functional.advantages import group_advantages, pooled_deviation
from mlrl_learners.functional.grouping import group_keys, grouped_advantages, statistic_weights
from mlrl_learners.functional.reach import TurnWeights
from mlrl_learners.functional.returns import AnswerGroup
from mlrl_learners.functional.role_baseline import RoleBaseline
from mlrl_learners.types import AgentID, Completion, Rollout

__all__ = ["answer_advantages", "with_token_charges"]


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


def with_token_charges(
    samples: Sequence[AnswerT], charges: Mapping[tuple[AgentID, Completion], Sequence[float]]
) -> list[AnswerT]:
    """Return the samples with A_t = A + sum over k < t of c_k, where A contains -sum of all c_k.

    A token is then not charged for the tokens before it. The sum depends on the tokens before t
    only, so that it is a baseline and adds no bias. Source: REINFORCE++ (arXiv 2501.03262, eq. 4).

    Args:
        samples: Answers with the advantage A of the whole answer.
        charges: c of each token; answers without charges stay as they are.
    """
    found = []
    for sample in samples:
        own = charges.get((sample.agent, sample.completion))
        if own:
            before = itertools.accumulate(own[:-1], initial=0.0)
            advantages = tuple(sample.advantage + total for total in before)
            found.append(replace(sample, token_advantages=advantages))
        else:
            found.append(sample)
    return found


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
