"""Configuration shared by all policy-gradient methods.

The groups of options are in `mlrl_learners.algorithms.policy_gradient_options` and
`mlrl_learners.algorithms.loss_options`, the update loop is in
`mlrl_learners.algorithms.policy_update`, the loss in `mlrl_learners.algorithms.answer_loss`, and
reward and KL terms are in `mlrl_learners.algorithms.reward_terms`.
"""

from dataclasses import dataclass, field, replace

from mlrl_learners.algorithms.loss_options import (
    ImportanceOptions,
    LossOptions,
    PenaltyOptions,
)
from mlrl_learners.algorithms.policy_gradient_options import (
    CreditOptions,
    GroupOptions,
    MinibatchOptimizerOptions,
)
from mlrl_learners.algorithms.team import TeamConfig
from mlrl_learners.errors import ConfigError
from mlrl_learners.types import Completion, RolloutConfig

__all__ = ["PolicyGradientConfig"]

GSPO_CLIPS = (3e-4, 4e-4)  # arXiv 2507.18071, section 5.1; the ratio is the mean of a whole answer


@dataclass(frozen=True)
class PolicyGradientConfig(TeamConfig):
    """Sampling of rollouts, credit, loss, penalties and optimizer of a policy-gradient method.

    Attributes:
        optimizer: Learning rate, its schedule, and steps per update.
        group: Answers that are sampled for a prompt.
        credit: Return of an answer.
        loss: Average over tokens, and the clip range.
        importance: Correction for a sampler that is not the trained policy.
        penalty: Terms for divergence, length and entropy.
    """

    optimizer: MinibatchOptimizerOptions = field(default_factory=MinibatchOptimizerOptions)
    group: GroupOptions = field(default_factory=GroupOptions)
    credit: CreditOptions = field(default_factory=CreditOptions)
    loss: LossOptions = field(default_factory=LossOptions)
    importance: ImportanceOptions = field(default_factory=ImportanceOptions)
    penalty: PenaltyOptions = field(default_factory=PenaltyOptions)

    def __post_init__(self) -> None:
        """Check combinations.

        Raises:
            ConfigError: If another option makes a value meaningless.
        """
        super().__post_init__()
        clip_high, cap = self.clips[1], self.loss.ratio_cap
        if self.loss.surrogate == "clip" and cap is not None and not cap > 1 + clip_high:
            raise ConfigError(
                f"loss.ratio_cap must be above 1 + loss.clip_high, {1 + clip_high}, got {cap}"
            )
        if self.sampler.endpoint and self.importance.correction == "none":
            raise ConfigError(
                "sampler.endpoint samples from other weights than the trained ones: set "
                "importance.correction token_truncate, or another correction, got none"
            )
        limit, buffer = self.sampling.max_new_tokens, self.penalty.overlong_buffer
        if buffer > limit:
            raise ConfigError(
                f"penalty.overlong_buffer must be at most sampling.max_new_tokens, {limit}, got "
                f"{buffer}"
            )
        # The rollout section of a run may set joint_mode cross, so only the group size is checked.
        self.check_rollout(replace(self.group.rollout, joint_mode="cross"))

    @property
    def clips(self) -> tuple[float, float]:
        """Clip range below and above a ratio of 1: the configured one, or that of the loss."""
        low, high = self.own_clips()
        return (
            low if self.loss.clip_low is None else self.loss.clip_low,
            high if self.loss.clip_high is None else self.loss.clip_high,
        )

    def own_clips(self) -> tuple[float, float]:
        """Return the default clip range of the configured loss."""
        return GSPO_CLIPS if self.loss.kind == "gspo" else (0.2, 0.2)

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that rollouts contain the joint actions that `credit` compares.

        Raises:
            ConfigError: If `credit` is `difference` and answers are not crossed, `credit`
                compares answers and there is one answer per prompt, or branching is greedy and
                nodes are weighted as if it were random.
        """
        size = rollout.num_samples
        if rollout.branching == "greedy" and self.credit.turn_weights != "nodes":
            raise ConfigError(
                "credit.turn_weights reach weights joint actions that were drawn at random, and "
                "group.branching greedy takes the best: set credit.turn_weights nodes"
            )
        if self.credit.kind == "difference" and (rollout.joint_mode != "cross" or size < 2):
            raise ConfigError(
                "credit.kind difference compares joint actions that differ in the answer of one "
                "agent: it takes group.joint_mode cross and a group.size of at least 2, got "
                f"{rollout.joint_mode} and {size}"
            )
        if self.credit.kind == "replay" and (rollout.joint_mode == "aligned" or size < 2):
            raise ConfigError(
                "credit.kind replay compares answers beside the same answers of the others: it "
                "takes group.joint_mode replay or cross and a group.size of at least 2, got "
                f"{rollout.joint_mode} and {size}"
            )
        if self.credit.kind == "leave_one_out" and size < 2:
            raise ConfigError(
                "group.size or rollout.num_samples must be at least 2 for credit.kind "
                f"leave_one_out, which compares joint actions at the same prompts, got {size}"
            )

    def is_masked(self, completion: Completion) -> bool:
        """Return whether an answer is excluded from the policy loss."""
        return self.penalty.overlong == "mask" and completion.finish_reason == "length"
