"""Option groups of the loss of policy-gradient methods: loss, importance weights and penalties."""

import math
from dataclasses import dataclass
from typing import Literal

from mlrl_learners.config.options import check_unread
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.importance import ImportanceMode
from mlrl_learners.functional.losses import KlEstimator, LossKind

__all__ = ["ImportanceOptions", "LossOptions", "PenaltyOptions"]


@dataclass(frozen=True)
class LossOptions:
    """Which loss and clip: the average over tokens, and the bounds of the importance ratio.

    Attributes:
        kind: Average over tokens: `grpo`, `token_mean`, `dr_grpo`, `sequence` or `gspo`; see
            `mlrl_learners.functional.losses.token_weights`.
        surrogate: `clip` is the clipped surrogate of PPO, without a gradient for clipped tokens;
            `cispo` caps the importance ratio, a weight without a gradient, and every token keeps
            its gradient (arXiv 2506.13585).
        clip_low: The importance ratio is clipped below at 1 - clip_low, in [0, 1]; 1 disables the
            bound, null takes the default of the loss: 0.2, or 3e-4 for `gspo` (arXiv 2507.18071);
            with `sequence`, methods without a critic have 1.
        clip_high: The importance ratio is clipped above at 1 + clip_high, at least 0; `inf`
            disables the bound, null takes the default of the loss: 0.2, or 4e-4 for `gspo`; with
            `sequence`, methods without a critic have `inf`.
        ratio_cap: Largest importance ratio. With `clip`, it bounds answers of negative advantage
            (dual clip, arXiv 1912.09729; two-sided clip, arXiv 2505.07291) and is above
            1 + clip_high; null for no bound. With `cispo`, it is at least 1; null for 5.
    """

    kind: LossKind = "grpo"
    surrogate: Literal["clip", "cispo"] = "clip"
    clip_low: float | None = None
    clip_high: float | None = None
    ratio_cap: float | None = None

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range, or has no effect beside another.
        """
        if self.clip_low is not None and not 0 <= self.clip_low <= 1:
            raise ConfigError(f"clip_low must be in [0, 1], got {self.clip_low}")
        if self.clip_high is not None and not self.clip_high >= 0:
            raise ConfigError(f"clip_high must be at least 0, got {self.clip_high}")
        if self.ratio_cap is not None and not self.ratio_cap >= 1:
            raise ConfigError(f"ratio_cap must be at least 1, got {self.ratio_cap}")
        if self.surrogate == "cispo":
            if self.kind == "gspo":
                raise ConfigError(
                    "surrogate cispo caps the ratios of tokens, and loss.kind gspo has those of "
                    "answers: set loss.kind token_mean"
                )
            reason = "surrogate cispo, which clips nothing: set it to null, or set ratio_cap"
            check_unread(self, ("clip_low", "clip_high"), reason)


@dataclass(frozen=True)
class ImportanceOptions:
    """Which importance weights: correction for a sampler that is not the trained policy.

    Attributes:
        correction: Weight of a token's policy loss, from the ratio of its probability under the
            policy before the update and under the sampler: `none` assumes that they are equal and
            saves a forward pass; `token_truncate` is min(ratio, cap); `token_mask` is 0 outside
            [1 / cap, cap]; `sequence_truncate` and `sequence_mask` take the product of the ratios
            of an answer; see `mlrl_learners.functional.importance`.
        cap: Largest weight, C, at least 1; `inf` cuts nothing.
        veto: Answers with a token whose ratio is below this have weight 0, in [0, 1); 0 for none.
    """

    correction: Literal["none"] | ImportanceMode = "none"
    cap: float = 3.0
    veto: float = 0.0

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range, or has no effect beside another.
        """
        if not self.cap >= 1:
            raise ConfigError(f"cap must be at least 1, got {self.cap}")
        if not 0 <= self.veto < 1:
            raise ConfigError(f"veto must be in [0, 1), got {self.veto}")
        if self.correction == "none":
            reason = "importance.correction none: set it to token_truncate"
            check_unread(self, ("cap", "veto"), reason)


@dataclass(frozen=True)
class PenaltyOptions:
    """Which penalty: terms for divergence, length and entropy, added to the loss or the reward.

    Attributes:
        kl_coef: Weight of the KL divergence from the starting weights, at least 0; 0 keeps no
            reference model.
        kl_estimator: Estimator of the KL divergence: `k1`, `k2` or `k3`.
        kl_in: Adds the KL term to the `loss` (arXiv 2402.03300), or subtracts it from the `reward`
            of an answer (arXiv 2203.02155); `token` charges each token for its own divergence and
            that of later tokens only (arXiv 2501.03262).
        kl_weighted: Multiplies the KL term of the loss by the importance ratio, so that its
            gradient is that of the divergence in every epoch (arXiv 2512.02556, section 3.1).
        entropy_coef: Weight of the entropy of the token distributions, at least 0; it is
            subtracted from the loss.
        overlong: Treatment of answers that the token limit truncated: `keep` trains on them,
            `mask` removes them from the policy loss, `penalize` subtracts `overlong_penalty` from
            their reward; `soft` subtracts a part of it that grows over the last `overlong_buffer`
            tokens below the limit, also if the answer ends there (arXiv 2503.14476).
        overlong_penalty: Penalty for an answer of the largest length in units of the reward, above
            0 with `overlong: penalize` and `soft`, and 0 otherwise.
        overlong_buffer: Tokens over which the penalty of `soft` grows, from 1 to
            `sampling.max_new_tokens` (paper: a fifth of it); 0 otherwise.
    """

    kl_coef: float = 0.0
    kl_estimator: KlEstimator = "k3"
    kl_in: Literal["loss", "reward", "token"] = "loss"
    kl_weighted: bool = False
    entropy_coef: float = 0.0
    overlong: Literal["keep", "mask", "penalize", "soft"] = "keep"
    overlong_penalty: float = 0.0
    overlong_buffer: int = 0

    def __post_init__(self) -> None:
        """Check ranges and combinations.

        Raises:
            ConfigError: If a value is outside its range, or another option makes it meaningless.
        """
        for name in ("kl_coef", "entropy_coef", "overlong_penalty"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ConfigError(f"{name} must be at least 0, got {value}")
        if (self.overlong in ("penalize", "soft")) != (self.overlong_penalty > 0):
            raise ConfigError(
                "overlong_penalty must be above 0 for overlong penalize or soft, and 0 otherwise, "
                f"got {self.overlong_penalty} for {self.overlong}"
            )
        if self.overlong_buffer < 0 or (self.overlong == "soft") != (self.overlong_buffer > 0):
            raise ConfigError(
                "overlong_buffer must be above 0 for overlong soft, and 0 otherwise, got "
                f"{self.overlong_buffer} for {self.overlong}"
            )
        if not self.kl_coef:
            names = ("kl_estimator", "kl_in", "kl_weighted")
            check_unread(self, names, "kl_coef 0: set kl_coef above 0")
        if self.kl_in != "loss":
            check_unread(self, ("kl_weighted",), f"kl_in {self.kl_in}: set kl_in loss")
