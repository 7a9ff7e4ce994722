"""Metrics of an update, per agent, policy and critic."""

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from mlrl_learners.functional.ratio_histogram import ratio_percentiles
from mlrl_learners.functional.returns import AnswerGroup
from mlrl_learners.policies.optimizer import PolicyOptimizer

__all__ = ["critic_metrics", "group_metrics", "policy_metrics"]


def group_metrics(
    groups: Sequence[AnswerGroup], keys: Sequence[Hashable] | None = None
) -> dict[str, float]:
    """Return answer lengths and rates of truncated answers and of groups of equal returns by agent.

    Lengths are in tokens; rates are in [0, 1]. Agents whose answers are compared with no other
    answer have no rate of groups of equal returns.

    Args:
        groups: The answers of each agent at each node.
        keys: Key of the answers with which those of each node are compared, from `group_keys`;
            by default, the answers of a node are compared with each other.
    """
    metrics: dict[str, float] = {}
    compared = _compared(groups, range(len(groups)) if keys is None else keys)
    for agent in dict.fromkeys(group.agent for group in groups):
        mine = [group for group in groups if group.agent == agent]
        completions = [completion for group in mine for completion in group.completions]
        cut = sum(completion.finish_reason == "length" for completion in completions)
        tokens = sum(len(completion.token_ids) for completion in completions)
        metrics[f"{agent}/completion_tokens"] = tokens / len(completions)
        metrics[f"{agent}/truncated_rate"] = cut / len(completions)
        flat = [_is_flat(some) for some in compared if any(each.agent == agent for each in some)]
        if flat:
            metrics[f"{agent}/zero_variance_rate"] = sum(flat) / len(flat)
    return metrics


def _compared(
    groups: Sequence[AnswerGroup], keys: Sequence[Hashable]
) -> list[Sequence[AnswerGroup]]:
    """Return the groups of equal keys with two answers or more."""
    by_key: defaultdict[Hashable, list[AnswerGroup]] = defaultdict(list)
    for key, group in zip(keys, groups, strict=True):
        by_key[key].append(group)
    return [some for some in by_key.values() if sum(len(each.returns) for each in some) > 1]


def _is_flat(groups: Sequence[AnswerGroup]) -> bool:
    """Return whether all answers of the nodes of a group have the same return."""
    if len(groups) == 1:
        return groups[0].is_flat
    return len({value for group in groups for value in group.returns}) == 1


def policy_metrics(
    name: str, stats: Mapping[str, float], epochs: int, optimizer: PolicyOptimizer
) -> dict[str, float]:
    """Return the metrics of one policy from the statistics of an update.

    The loss is a mean over epochs, the gradient norm a mean over steps, all others are means over
    tokens. Entropy, KL from the sampling policy and gradient norm are also given for every agent of
    the policy, the first two over its own tokens.

    Args:
        name: Name of the policy.
        stats: Sums from `mlrl_learners.algorithms.policy_update.take_steps`.
        epochs: Passes over the rollouts.
        optimizer: Optimizer of the policy, after the update.
    """
    tokens = stats["tokens"]
    agents = [key.removesuffix("/tokens") for key in stats if key.endswith("/tokens")]
    grad_norm = stats["grad_norm"] / stats["steps"]
    metrics = {
        f"{name}/loss": stats["loss"] / epochs,
        f"{name}/lr": optimizer.last_lr,
        f"{name}/clip_fraction": stats["clipped"] / tokens,
    }
    for kind in ("entropy", "kl"):
        metrics[f"{name}/{kind}"] = sum(stats[f"{agent}/{kind}"] for agent in agents) / tokens
        for agent in agents:
            metrics[f"{agent}/{kind}"] = stats[f"{agent}/{kind}"] / stats[f"{agent}/tokens"]
    metrics |= {f"{owner}/grad_norm": grad_norm for owner in (name, *agents)}
    for kind in ("kl_reference", "kl_sampler", "importance_cut"):
        if kind in stats:
            metrics[f"{name}/{kind}"] = stats[kind] / tokens
    metrics |= {f"{name}/{kind}": ratio for kind, ratio in ratio_percentiles(stats).items()}
    return metrics | optimizer.scale.metrics(f"{name}/")


def critic_metrics(
    name: str,
    stats: Mapping[str, float],
    *,
    old_values: Sequence[float],
    targets: Sequence[float],
    epochs: int,
    lr: float,
) -> dict[str, float]:
    """Return the metrics of one critic: its loss, and the fit of its values before the update.

    `explained_variance` is 1 - Var(R - V) / Var(R), and 0 if all targets R are equal.

    Args:
        name: Name of the critic.
        stats: Sums from `mlrl_learners.algorithms.policy_update.take_steps`.
        old_values: Values V before the update.
        targets: Value targets R.
        epochs: Passes over the rollouts.
        lr: Learning rate of the last step.
    """
    errors = [target - value for target, value in zip(targets, old_values, strict=True)]
    spread = _variance(targets)
    return {
        f"{name}/value_loss": stats["value_loss"] / epochs,
        f"{name}/value": math.fsum(old_values) / len(old_values),
        f"{name}/explained_variance": 1.0 - _variance(errors) / spread if spread > 0 else 0.0,
        f"{name}/critic_grad_norm": stats["critic_grad_norm"] / stats["steps"],
        f"{name}/critic_lr": lr,
    }


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)
