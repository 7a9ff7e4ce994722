"""Configuration of MAGRPO and its family."""

import math
from dataclasses import dataclass, field

from mlrl_learners.algorithms.loss_options import LossOptions
from mlrl_learners.algorithms.policy_gradient_config import PolicyGradientConfig
from mlrl_learners.algorithms.policy_gradient_options import BaselineOptions
from mlrl_learners.errors import ConfigError
from mlrl_learners.types import RolloutConfig

__all__ = ["MagrpoConfig"]

SUM_OVER_TOKENS = LossOptions(kind="sequence")


@dataclass(frozen=True)
class MagrpoConfig(PolicyGradientConfig):
    """Options of MAGRPO; with a baseline, `group.size` is at least 2.

    With `loss.kind: sequence`, `clip_low` and `clip_high` default to 1 and `inf`, which is no
    clipping.

    Attributes:
        loss: Average over tokens, and the clip range.
        baseline: Baseline of returns, and the scale of advantages.
    """

    loss: LossOptions = SUM_OVER_TOKENS
    baseline: BaselineOptions = field(default_factory=BaselineOptions)

    def __post_init__(self) -> None:
        """Check combinations.

        Raises:
            ConfigError: If another option makes a value meaningless.
        """
        super().__post_init__()
        if self.penalty.kl_in == "token" and self.baseline.normalize_std:
            raise ConfigError(
                "penalty.kl_in token charges tokens in units of the reward, and "
                "baseline.normalize_std scales answers: set baseline.normalize_batch instead"
            )
        self._check_grouping()

    def _check_grouping(self) -> None:
        """Check that credit and penalties reach the statistics of groups."""
        baseline, penalty, kind = self.baseline, self.penalty, self.credit.kind
        parts = "baseline.components" if baseline.components else "baseline.group_by anchor"
        whole = ("difference", "leave_one_out", "replay", "alignment")
        if (baseline.group_by == "anchor" or baseline.components) and kind in whole:
            raise ConfigError(
                f"credit.kind {kind} compares joint actions of a node, and {parts} compares "
                "returns: leave one of them out"
            )
        in_reward = penalty.overlong_penalty or (penalty.kl_coef and penalty.kl_in != "loss")
        if baseline.components and (in_reward or kind != "shared"):
            raise ConfigError(
                "baseline.components takes the environment's parts of the reward, and "
                f"credit.kind {kind} or a penalty changes the reward: leave one of them out"
            )

    def own_clips(self) -> tuple[float, float]:
        """Return the default clip range of the configured loss."""
        return (1.0, math.inf) if self.loss.kind == "sequence" else super().own_clips()

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that rollouts contain the answers that `credit` and `baseline` compare.

        Raises:
            ConfigError: If `credit` is `difference` and answers are not crossed, or `credit`,
                `baseline` needs a group and there is one answer per prompt.
        """
        super().check_rollout(rollout)
        size = rollout.num_samples
        if self.baseline.group_by != "node":
            size *= rollout.num_rollouts
        if rollout.max_resamples and self.baseline.kind in ("none", "role_ema"):
            raise ConfigError(
                "group.resample replaces tasks whose answers have equal returns, from which "
                f"baseline.kind {self.baseline.kind} learns: leave it out"
            )
        if size < 2 and self.baseline.kind not in ("none", "role_ema"):
            raise ConfigError(
                f"baseline.kind {self.baseline.kind} takes at least 2 answers a prompt, group.size "
                f"or rollout.num_samples, got {size}; with one answer, set baseline.kind none as "
                "in mareinforce, or role_ema"
            )
