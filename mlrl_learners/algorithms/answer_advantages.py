"""Advantages of answers from the returns of their groups, for methods without a critic.

`with_token_charges` is for methods with a critic as well.
"""

import itertools
import warnings
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace

from mlrl_learners.algorithms.policy_gradient_options import BaselineOptions, CreditOptions
from mlrl_learners.algorithms.policy_update import AnswerT
from mlrl_learners.functional.advantages import group_advantages, pooled_deviation
from mlrl_learners.functional.components import component_rewards, decoupled_advantages
from mlrl_learners.functional.grouping import (
    anchored_advantages,
    group_keys,
    grouped_advantages,
    node_contexts,
    statistic_weights,
)
from mlrl_learners.functional.returns import AnswerGroup, rollout_groups
from mlrl_learners.functional.role_baseline import RoleBaseline
from mlrl_learners.types import AgentID, Completion, Rollout

__all__ = ["answer_advantages", "comparison_keys", "with_token_charges"]


def answer_advantages(
    groups: Sequence[AnswerGroup],
    rollouts: Sequence[Rollout],
    options: BaselineOptions,
    *,
    credit: CreditOptions,
    role_baseline: RoleBaseline,
    agents: Collection[AgentID],
) -> list[tuple[AnswerGroup, list[float]]]:
    """Return the groups of the trained agents, and the advantage of each of their answers.

    Answers of other agents are in no statistics.

    Args:
        groups: All groups, from `rollout_groups`.
        rollouts: Rollouts of the groups; those of one task and seed share groups.
        options: Baseline and scale.
        credit: Credit of agents, discount, and weights of nodes.
        role_baseline: Averages of `role_ema`.
        agents: The trained agents.
    """
    mine = [group for group in groups if group.agent in agents]
    if options.components:
        found = _of_components(mine, rollouts, options, credit)
    elif options.group_by == "anchor":
        found = _anchored(mine, rollouts, options, credit)
    elif options.group_by == "node":
        found = _of_nodes(mine, options, credit, role_baseline)
    else:
        weights = statistic_weights(
            rollouts,
            options.weight_by,
            group_by=options.group_by,
            turn_weights=credit.turn_weights,
        )
        found = grouped_advantages(
            [group.returns for group in mine],
            comparison_keys(mine, rollouts, options),
            [w for group, w in zip(groups, weights, strict=True) if group.agent in agents],
            normalize_std=options.normalize_std,
            epsilon=options.std_epsilon,
        )
    return list(zip(mine, found, strict=True))


def _of_nodes(
    groups: Sequence[AnswerGroup],
    options: BaselineOptions,
    credit: CreditOptions,
    role_baseline: RoleBaseline,
) -> list[list[float]]:
    """Return advantages within the group of each node."""
    own = not options.normalize_std or credit.turn_weights == "nodes"
    deviations = [None] * len(groups) if own else _pooled_deviations(groups)
    return [
        group_advantages(
            group.returns,
            options.kind,
            normalize_std=options.normalize_std,
            deviation=deviation,
            epsilon=options.std_epsilon,
            role_baseline=role_baseline.of(group.role),
        )
        for group, deviation in zip(groups, deviations, strict=True)
    ]


def comparison_keys(
    groups: Sequence[AnswerGroup], rollouts: Sequence[Rollout], options: BaselineOptions
) -> list[Hashable]:
    """Return the key of the answers with which those of each group are compared.

    The rollouts of a task in an update have equal seeds, and share groups.
    """
    tasks = [(rollout.task_id, rollout.seed) for rollout in rollouts]
    return group_keys(groups, options.group_by, tasks)


def _anchored(
    groups: Sequence[AnswerGroup],
    rollouts: Sequence[Rollout],
    options: BaselineOptions,
    credit: CreditOptions,
) -> list[list[float]]:
    """Return advantages of episodes plus those among answers to equal observations.

    Every episode counts once among episodes, however many answers the agent gave in it.
    """
    agents = {group.agent for group in groups}
    whole = _returns(rollouts, replace(credit, gamma=1.0), agents)
    weights = statistic_weights(rollouts, "trajectory", turn_weights=credit.turn_weights)
    weighted = zip(node_contexts(rollouts), weights, strict=True)
    mine = [(context, weight) for context, weight in weighted if context.agent in agents]
    contexts = [context for context, _ in mine]
    return anchored_advantages(
        [
            [context.earned + value for value in returns]
            for context, returns in zip(contexts, whole, strict=True)
        ],
        [group.returns for group in groups],
        comparison_keys(groups, rollouts, options),
        [(context.agent, context.observation) for context in contexts],
        episode_weights=[weight for _, weight in mine],
        normalize_std=options.normalize_std,
        epsilon=options.std_epsilon,
    )


def _of_components(
    groups: Sequence[AnswerGroup],
    rollouts: Sequence[Rollout],
    options: BaselineOptions,
    credit: CreditOptions,
) -> list[list[float]]:
    """Return advantages from the parts of rewards, each normalised in its group."""
    agents = {group.agent for group in groups}
    given = _component_names(rollouts)
    missing = sorted(set(options.components) - given)
    if missing:  # such as the penalty of an illegal move, if all moves were legal
        warnings.warn(
            f"no reward of this update has the component {missing[0]!r} of baseline.components; "
            f"there are {sorted(given)}",
            RuntimeWarning,
            stacklevel=2,
        )
    names = sorted(given.union(missing))
    returns = {
        name: _returns([component_rewards(each, name) for each in rollouts], credit, agents)
        for name in names
    }
    parts = [{name: returns[name][place] for name in names} for place in range(len(groups))]
    weights = [group.weight for group in groups for _ in group.returns]
    return decoupled_advantages(parts, options.components, weights, epsilon=options.std_epsilon)


def _component_names(rollouts: Sequence[Rollout]) -> set[str]:
    return {
        name
        for rollout in rollouts
        for node in rollout.root.walk()
        for step in node.steps
        for components in step.components.values()
        for name in components
    }


def _returns(
    rollouts: Sequence[Rollout], credit: CreditOptions, agents: Collection[AgentID]
) -> list[tuple[float, ...]]:
    """Return the returns of the answers of some agents, by node."""
    groups = rollout_groups(rollouts, credit.gamma, credit.kind, credit.turn_weights)
    return [group.returns for group in groups if group.agent in agents]


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
