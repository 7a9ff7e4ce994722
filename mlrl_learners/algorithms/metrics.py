"""What the group-relative methods log at each update, by agent and by policy."""

from collections.abc import Mapping, Sequence

from mlrl_learners.functional.returns import Group

__all__ = ["group_metrics", "policy_metrics"]


def group_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """Return lengths and shares of cut answers and of groups without a signal, per agent."""
    metrics: dict[str, float] = {}
    for agent in dict.fromkeys(group.agent for group in groups):
        mine = [group for group in groups if group.agent == agent]
        completions = [completion for group in mine for completion in group.completions]
        equal = sum(min(group.returns) == max(group.returns) for group in mine)
        cut = sum(completion.finish_reason == "length" for completion in completions)
        tokens = sum(len(completion.token_ids) for completion in completions)
        metrics[f"{agent}/completion_tokens"] = tokens / len(completions)
        metrics[f"{agent}/truncated_rate"] = cut / len(completions)
        metrics[f"{agent}/equal_group_rate"] = equal / len(mine)
    return metrics


def policy_metrics(
    name: str, stats: Mapping[str, float], epochs: int, lr: float
) -> dict[str, float]:
    """Return means over tokens and steps of what `Magrpo` summed up for one policy."""
    tokens = stats["tokens"]
    metrics = {
        f"{name}/loss": stats["loss"] / epochs,
        f"{name}/grad_norm": stats["grad_norm"] / stats["steps"],
        f"{name}/lr": lr,
        f"{name}/kl": stats["kl"] / tokens,
        f"{name}/entropy": stats["entropy"] / tokens,
        f"{name}/clip_fraction": stats["clipped"] / tokens,
    }
    if "kl_reference" in stats:
        metrics[f"{name}/kl_reference"] = stats["kl_reference"] / tokens
    return metrics
