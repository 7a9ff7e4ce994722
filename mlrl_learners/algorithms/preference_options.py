"""Option groups of methods that learn from preferences between joint answers."""

import math
from dataclasses import dataclass

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.preferences import PreferenceLoss
from mlrl_learners.policies import ModelSource, OptimizerConfig

__all__ = [
    "EpochOptimizerOptions",
    "PreferenceLossOptions",
    "PreferenceOptions",
    "RewardModelOptions",
    "ValidatedPreferenceOptions",
]


@dataclass(frozen=True)
class PreferenceOptions:
    """Which preferences: where pairs of joint answers come from, and how they are ranked.

    Attributes:
        episodes: File of `mlrl collect` with several episodes per task; empty to use the collected
            rollouts.
        num_pairs: Largest number of pairs per decision point, those with the largest gaps, at least
            1; with a file also the number of pairs per update.
        gamma: Discount factor per turn of the returns that rank joint answers, in [0, 1].
    """

    episodes: str = ""
    num_pairs: int = 16
    gamma: float = 1.0

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        if self.num_pairs < 1:
            raise ConfigError(f"num_pairs must be at least 1, got {self.num_pairs}")
        if not 0 <= self.gamma <= 1:
            raise ConfigError(f"gamma must be in [0, 1], got {self.gamma}")


@dataclass(frozen=True)
class ValidatedPreferenceOptions(PreferenceOptions):
    """Which preferences: where pairs come from, how they are ranked, and which validate.

    Attributes:
        held_out: Fraction of a file's decision points that is kept for validation, in [0, 1).
    """

    held_out: float = 0.1

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        super().__post_init__()
        if not 0 <= self.held_out < 1:
            raise ConfigError(f"held_out must be in [0, 1), got {self.held_out}")


@dataclass(frozen=True)
class PreferenceLossOptions:
    """Which loss: that of the margin between the two answers of a pair.

    Attributes:
        kind: Loss of a margin: `sigmoid`, `hinge` or `ipo`.
        beta: Scale of the margin in the loss, per nat, above 0.
        label_smoothing: Probability that a preference label is wrong, in [0, 0.5).
        use_reference: Measures log-ratios against the starting weights; otherwise the margin uses
            the log-probabilities alone.
        per_token: Divides the log-ratio of an answer by its number of tokens, so that the margin
            does not depend on length; a joint answer has the tokens of all agents (SimPO, arXiv
            2405.14734).
        target_margin: Margin that a pair should reach, in units of `beta` times the margin, at
            least 0 (SimPO, where it is called gamma).
        sft_coef: Weight of the negative log-likelihood per token of the better answer, added to the
            loss, at least 0 (RPO, arXiv 2404.19733, where it is 1).
    """

    kind: PreferenceLoss = "sigmoid"
    beta: float = 0.1
    label_smoothing: float = 0.0
    use_reference: bool = True
    per_token: bool = False
    target_margin: float = 0.0
    sft_coef: float = 0.0

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        if not 0 < self.beta < math.inf:
            raise ConfigError(f"beta must be above 0, got {self.beta}")
        if not 0 <= self.label_smoothing < 0.5:
            raise ConfigError(f"label_smoothing must be in [0, 0.5), got {self.label_smoothing}")
        for name in ("target_margin", "sft_coef"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be at least 0, got {getattr(self, name)}")


@dataclass(frozen=True)
class RewardModelOptions:
    """Which reward model: its starting weights, its training, and the scale of its scores.

    Attributes:
        model: Model that the reward model starts from; null for the first policy's.
        lr: Learning rate of the reward model, above 0; null for the method's.
        epochs: Number of optimizer steps of the reward model per update, at least 1.
        label_smoothing: Probability that a preference label is wrong, in [0, 0.5).
        normalize_rewards: Shifts and scales the scores of an update to mean 0 and deviation 1.
    """

    model: ModelSource | None = None
    lr: float | None = None
    epochs: int = 4
    label_smoothing: float = 0.0
    normalize_rewards: bool = True

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        if self.epochs < 1:
            raise ConfigError(f"epochs must be at least 1, got {self.epochs}")
        if self.lr is not None and not 0 < self.lr < math.inf:
            raise ConfigError(f"lr must be above 0, got {self.lr}")
        if not 0 <= self.label_smoothing < 0.5:
            raise ConfigError(f"label_smoothing must be in [0, 0.5), got {self.label_smoothing}")


@dataclass(frozen=True)
class EpochOptimizerOptions(OptimizerConfig):
    """Which optimizer: learning rate, its schedule, and the steps taken on the same pairs.

    Attributes:
        epochs: Number of optimizer steps on the same pairs, at least 1.
    """

    epochs: int = 1

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range, or has no effect beside another.
        """
        super().__post_init__()
        if self.epochs < 1:
            raise ConfigError(f"epochs must be at least 1, got {self.epochs}")

    @property
    def steps_per_update(self) -> int:
        """Largest number of optimizer steps per update."""
        return self.epochs
