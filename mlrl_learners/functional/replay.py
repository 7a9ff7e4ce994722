"""Replay credit: an answer against alternatives to it in the same context, without torch.

The context of an answer is all that was said before, and the answers that other agents give in the
same turn. It is kept fixed, alternatives are drawn from it, and each is continued to the end. What
the answers before and beside it caused is equal for all alternatives and cancels. For the same
number of episodes there are fewer first answers: later agents gain, and the first one may lose.

Source: contextual counterfactual credit assignment (C3, arXiv 2603.06859).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from mlrl_learners.errors import ConfigError
from mlrl_learners.types import AgentID, Node

__all__ = ["replay_actions", "replay_advantages"]


def replay_advantages(node: Node, agent: AgentID, values: Sequence[float]) -> list[float]:
    """Return the advantage of each answer: its value minus the mean of the other alternatives'.

    Alternatives are joint actions with equal answers of the other agents. The mean over the others
    alone is a baseline without bias. An answer in several contexts gets the mean over them; if an
    agent acts alone, all of its answers have one context.

    Args:
        node: Node of the joint actions.
        agent: Agent whose answers are compared.
        values: Value of each joint action, in order: the mean return over its subtree
            (`joint_returns`), or the return of a fixed continuation that was scored again.

    Raises:
        ConfigError: If an answer has no alternative in any context.
    """
    contexts: defaultdict[tuple[tuple[AgentID, int], ...], list[int]] = defaultdict(list)
    for number, step in enumerate(node.steps):
        others = tuple(sorted((who, k) for who, k in step.samples.items() if who != agent))
        contexts[others].append(number)
    found: list[list[float]] = [[] for _ in node.completions[agent]]
    for numbers in (numbers for numbers in contexts.values() if len(numbers) > 1):
        total = math.fsum(values[k] for k in numbers)
        equal = len({values[k] for k in numbers}) == 1
        for number in numbers:
            rest = (total - values[number]) / (len(numbers) - 1)
            advantage = 0.0 if equal else values[number] - rest  # exactly 0: no rounding errors
            found[node.steps[number].samples[agent]].append(advantage)
    if not all(found):
        raise ConfigError(
            f"credit 'replay' compares answers of {agent!r} in one context, and turn {node.turn} "
            "has an answer without an alternative: set group.size to 2 or more and "
            "group.joint_mode to cross or replay"
        )
    return [math.fsum(some) / len(some) for some in found]


def replay_actions(sizes: Mapping[AgentID, int]) -> list[dict[AgentID, int]]:
    """Return joint actions in which at most one agent deviates from the first answers of all.

    They give every answer alternatives in one context, and are 1 + sum(size - 1) in number, where
    `cross` has the product of the sizes.

    Args:
        sizes: Number of answers of each agent at a node, at least 1.
    """
    first = dict.fromkeys(sizes, 0)
    return [
        first,
        *({**first, agent: k} for agent, size in sizes.items() for k in range(1, size)),
    ]
