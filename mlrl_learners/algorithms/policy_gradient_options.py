"""Option groups of the policy-gradient methods: groups, credit, baseline and optimizer.

Those of the loss are in `mlrl_learners.algorithms.loss_options`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from mlrl_learners.config.options import check_unread
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.advantages import Baseline
from mlrl_learners.functional.credit import Credit
from mlrl_learners.functional.grouping import GroupBy, WeightBy
from mlrl_learners.functional.reach import TurnWeights
from mlrl_learners.policies import OptimizerConfig
from mlrl_learners.types import Branching, JointMode, RolloutConfig

__all__ = [
    "BaselineOptions",
    "CreditOptions",
    "GroupOptions",
    "MinibatchOptimizerOptions",
]

STRENGTHS: Mapping[Credit, float] = {
    "mixed": 1.0,
    "quality": 0.5,
    "margin": 0.5,
    "alignment": 1.0,
}


@dataclass(frozen=True)
class GroupOptions:
    """What is a group: how many answers are sampled for a prompt, and how they are combined.

    Attributes:
        size: Number of answers that an agent samples for each prompt, G, at least 1.
        joint_mode: `"aligned"` plays the j-th answers of all agents together, `"cross"` plays every
            combination of answers, `"replay"` every answer beside the first ones of the others.
        branching: `"tree"` continues from every joint action, `"chain"` from one drawn at random,
            `"greedy"` from the one of highest reward (AT-GRPO, arXiv 2510.11062).
        rollouts: Number of rollouts of each task in an update, at least 1.
        resample: Most further collections in an update that replace tasks whose answers all have
            the same return, at least 0 (dynamic sampling, arXiv 2503.14476).
    """

    size: int = 4
    joint_mode: JointMode = "aligned"
    branching: Branching = "tree"
    rollouts: int = 1
    resample: int = 0

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        for name, least in (("size", 1), ("rollouts", 1), ("resample", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}")

    @property
    def rollout(self) -> RolloutConfig:
        """Settings of the collection of rollouts."""
        return RolloutConfig(
            self.size, self.joint_mode, self.branching, self.rollouts, self.resample
        )


@dataclass(frozen=True)
class CreditOptions:
    """Whose credit: the return of an answer, and the share of it that an agent receives.

    Attributes:
        kind: Share of the value of a joint action that an agent receives: `shared` is all of it;
            `outcome` counts only the last reward of an episode; `team` counts the mean of all
            agents' rewards, where they differ; `mixed` adds `strength` times that mean to the
            agent's own reward (AT-GRPO, arXiv 2510.11062); `quality` rewards answers after correct
            ones more, `margin` progress over earlier ones (MARTI); `difference` subtracts the mean
            over the agent's other answers beside the same answers of its teammates and needs
            `joint_mode: cross`; `replay` does so wherever there is such an answer (C3,
            arXiv 2603.06859); `leave_one_out` subtracts the mean of the other joint actions;
            `alignment` adds the others' advantages where the agent's own past went well
            (arXiv 2406.14662).
        gamma: Discount factor per turn of the episode, turns in which an agent waits included, in
            [0, 1].
        turn_weights: `"reach"` weights an answer by the probability of reaching its node, which
            gives the gradient of the return; `"nodes"` weights all answers equally, as published
            libraries do, so that later turns of a tree count more than earlier ones.
        strength: Weight of the term that `mixed` (default 1), `quality`, `margin` (0.5) or
            `alignment` (1) adds, at least 0; null for that default.
    """

    kind: Credit = "shared"
    gamma: float = 1.0
    turn_weights: TurnWeights = "reach"
    strength: float | None = None

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        if not 0 <= self.gamma <= 1:
            raise ConfigError(f"gamma must be in [0, 1], got {self.gamma}")
        if self.turn_weights not in ("reach", "nodes"):
            raise ConfigError(f"turn_weights must be reach or nodes, got {self.turn_weights!r}")
        if self.kind == "alignment" and not self.gamma:
            raise ConfigError(
                "kind alignment discounts the agent's past by gamma, got 0: set credit.gamma"
            )
        if self.kind not in STRENGTHS:
            reason = f"credit.kind {self.kind}: leave it out"
            check_unread(self, ("strength",), reason)
        elif self.strength is not None and not 0 <= self.strength < math.inf:
            raise ConfigError(f"strength must be at least 0, got {self.strength}")

    @property
    def term_weight(self) -> float:
        """Weight of the term that the kind of credit adds; 0 for kinds without one."""
        return STRENGTHS.get(self.kind, 0.0) if self.strength is None else self.strength


@dataclass(frozen=True)
class BaselineOptions:
    """What is the baseline: what is subtracted from a return, and how advantages are scaled.

    Attributes:
        kind: Baseline of a group, subtracted from its returns: `mean`, `none`, `leave_one_out` or
            `max`; or `role_ema`, the moving average of the agent's returns, which needs no group
            (`mlrl_learners.functional.role_baseline`).
        group_by: Answers that share a mean and a deviation: those at a `node`, of an `agent` over a
            task (Dr. MAS, arXiv 2602.08847), of an `agent_turn`, or of all agents over a `task`;
            `anchor` adds the advantage of the episode among those of an agent over a task to that
            of the answer among those to equal observations (GiGPO, arXiv 2505.10978). All but
            `node` need `kind: mean`, and take the `group.rollouts` of a task together.
        weight_by: Weight of answers in the statistics of a group over several turns: `step` counts
            answers as much as their nodes, `trajectory` counts every episode once.
        ema_decay: Weight of the moving average before an update in that after it, in [0, 1).
        normalize_std: Divides advantages by the standard deviation of an agent's groups, pooled
            over the nodes of a rollout; with `turn_weights: nodes` by that of each group. Takes a
            `kind` that is computed from the group.
        std_epsilon: Constant added to that standard deviation, above 0.
        normalize_batch: Shifts and scales the advantages of a policy to mean 0 and deviation 1 in
            each update (REINFORCE++, arXiv 2501.03262).
        skip_equal_groups: Excludes answers with advantage 0 before the forward pass.
        components: Weight of each named part of the reward: every part is normalised in its group
            by itself, their weighted sum over the update (GDPO, arXiv 2601.05242); parts that are
            left out have weight 1, and an empty mapping takes rewards as a whole.
    """

    kind: Baseline = "mean"
    group_by: GroupBy = "node"
    weight_by: WeightBy = "step"
    ema_decay: float = 0.95
    normalize_std: bool = False
    std_epsilon: float = 1e-4
    normalize_batch: bool = False
    skip_equal_groups: bool = True
    components: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range, or has no effect beside another.
        """
        known = get_args(Baseline)
        if self.kind not in known:
            raise ConfigError(f"kind must be one of {', '.join(known)}, got {self.kind!r}")
        if self.group_by != "node" and self.kind != "mean":
            raise ConfigError(
                f"group_by {self.group_by} takes baseline.kind mean, got {self.kind}: leave it out"
            )
        if self.group_by == "anchor":
            reason = "group_by anchor, whose groups are episodes and observations: leave it out"
            check_unread(self, ("weight_by",), reason)
        if self.components:
            self._check_components()
        if self.group_by in ("node", "agent_turn"):
            reason = f"group_by {self.group_by}, which has one answer of an episode: leave it out"
            check_unread(self, ("weight_by",), reason)
        if not 0 <= self.ema_decay < 1:
            raise ConfigError(f"ema_decay must be in [0, 1), got {self.ema_decay}")
        if self.kind != "role_ema":
            reason = f"baseline.kind {self.kind}: set baseline.kind role_ema"
            check_unread(self, ("ema_decay",), reason)
        self._check_deviation()

    def _check_deviation(self) -> None:
        if not 0 < self.std_epsilon < math.inf:
            raise ConfigError(f"std_epsilon must be above 0, got {self.std_epsilon}")
        if not self.normalize_std:
            check_unread(self, ("std_epsilon",), "normalize_std false: set normalize_std")
        elif self.kind in ("none", "role_ema"):
            raise ConfigError(
                "normalize_std divides by the deviation of a group, which is 0 where returns are "
                f"equal and advantages are not, got baseline.kind {self.kind}: set "
                "baseline.normalize_batch instead"
            )

    def _check_components(self) -> None:
        for name, weight in self.components.items():
            if not math.isfinite(weight):
                raise ConfigError(f"components must have finite weights, got {weight} for {name!r}")
        reason = "components, which are each normalised in their node's group: leave it out"
        names = ("kind", "group_by", "normalize_std", "normalize_batch")
        check_unread(self, names, reason)


@dataclass(frozen=True)
class MinibatchOptimizerOptions(OptimizerConfig):
    """Which optimizer: learning rate, its schedule, and the steps taken on the same rollouts.

    Attributes:
        epochs: Number of passes over the same rollouts, at least 1.
        num_minibatches: Number of optimizer steps per pass, at least 1.
    """

    epochs: int = 1
    num_minibatches: int = 1

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range, or has no effect beside another.
        """
        super().__post_init__()
        for name in ("epochs", "num_minibatches"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")

    @property
    def steps_per_update(self) -> int:
        """Largest number of optimizer steps per update."""
        return self.epochs * self.num_minibatches
