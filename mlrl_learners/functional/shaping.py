"""Rewards of one agent shaped by its own earlier rewards and by those of the team, without torch.

Sources: reward shaping of MARTI (`marti/verifiers/auto_reward_alloc.py`); sum of team and own
reward (AT-GRPO, arXiv 2510.11062).
"""

import math
from collections.abc import Sequence
from typing import Literal

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.credit import with_rewards
from mlrl_learners.types import AgentID, JointStep, Node, Rollout

__all__ = ["HistoryShaping", "history_rewards", "mixed_rewards", "shaped_reward"]

HistoryShaping = Literal["quality", "margin"]


def shaped_reward(
    reward: float, earlier: Sequence[float], kind: HistoryShaping, strength: float = 0.5
) -> float:
    """Return the reward of a turn shaped by Q, the mean of the agent's earlier rewards.

    - `quality`: R + strength * (Q R - (1 - Q) (1 - R)), which is R + strength * (R + Q - 1): turns
      after correct turns earn more
    - `margin`: R + strength * (R - Q): progress over earlier turns earns more

    Published lists exchange the two: in MARTI's code `quality` is the first formula, with the
    product of Q and R, and `margin` the second, the distance from Q.

    Q does not depend on the answer, so that among the answers to one prompt both scale rewards by
    1 + strength. What differs are the returns of earlier turns, which raise or lower a later Q:
    under `quality` an early success earns more, under `margin` less.

    Args:
        reward: R, in [0, 1].
        earlier: Rewards of the agent's earlier turns in the episode, each in [0, 1]; the reward of
            a first turn is not shaped.
        kind: Kind of shaping.
        strength: Weight of the added term, at least 0; 0.5 in MARTI.

    Raises:
        ConfigError: If a reward is outside [0, 1], where Q is no share of success.
    """
    for value in (reward, *earlier):
        if not 0 <= value <= 1:
            raise ConfigError(
                f"credit {kind!r} takes rewards in [0, 1], got {value}: set another credit"
            )
    if not earlier:
        return reward
    quality = math.fsum(earlier) / len(earlier)
    if kind == "margin":
        return reward + strength * (reward - quality)
    return reward + strength * (quality * reward - (1 - quality) * (1 - reward))


def history_rewards(rollout: Rollout, kind: HistoryShaping, strength: float = 0.5) -> Rollout:
    """Return a rollout whose rewards are shaped by the rewards before them on the same path.

    Rewards of turns in which an agent waits are not shaped, and are not part of Q.

    Args:
        rollout: The rollout; it is not modified.
        kind: Kind of shaping, see `shaped_reward`.
        strength: Weight of the added term, at least 0.

    Raises:
        ConfigError: If a reward is outside [0, 1].
    """
    earlier: dict[int, dict[AgentID, tuple[float, ...]]] = {id(rollout.root): {}}
    for node in rollout.root.walk():
        before = earlier[id(node)]
        for step in node.steps:
            if step.child is not None:
                paid = {a: (*before.get(a, ()), step.rewards[a]) for a in step.samples}
                earlier[id(step.child)] = {**before, **paid}

    def shaped(node: Node, step: JointStep, agent: AgentID) -> float:
        if agent not in step.samples:
            return step.rewards[agent]
        before = earlier[id(node)].get(agent, ())
        return shaped_reward(step.rewards[agent], before, kind, strength)

    return with_rewards(rollout, shaped)


def mixed_rewards(rollout: Rollout, team_weight: float) -> Rollout:
    """Return a rollout in which every agent gets its own reward plus a share of the team's.

    The reward is R_i + team_weight * mean over all agents of R; agents that have left earn nothing.

    Args:
        rollout: The rollout; it is not modified.
        team_weight: Weight of the team's mean reward, at least 0.
    """
    size = len(rollout.agents)

    def mixed(_: Node, step: JointStep, agent: AgentID) -> float:
        return step.rewards[agent] + team_weight * math.fsum(step.rewards.values()) / size

    return with_rewards(rollout, mixed)
