"""Configurations of methods with critics."""

from dataclasses import dataclass, field

from mlrl_learners.algorithms.critic_options import AdvantageOptions, CriticOptions
from mlrl_learners.algorithms.policy_gradient_config import PolicyGradientConfig
from mlrl_learners.algorithms.policy_gradient_options import (
    CreditOptions,
    MinibatchOptimizerOptions,
)
from mlrl_learners.errors import ConfigError
from mlrl_learners.types import RolloutConfig

__all__ = ["ActorCriticConfig", "CriticConfig"]

TWO_EPOCHS = MinibatchOptimizerOptions(epochs=2)
DISCOUNTED = CreditOptions(gamma=0.9)


@dataclass(frozen=True)
class CriticConfig(PolicyGradientConfig):
    """Options of a method with critics.

    Attributes:
        critic: Kind and training of the critics.
    """

    critic: CriticOptions = field(default_factory=CriticOptions)


@dataclass(frozen=True)
class ActorCriticConfig(CriticConfig):
    """Options of the actor-critic methods.

    Attributes:
        optimizer: Learning rate, its schedule, and steps per update.
        credit: Return of an answer.
        advantage: Combination of the values and rewards of several turns.
    """

    optimizer: MinibatchOptimizerOptions = TWO_EPOCHS
    credit: CreditOptions = DISCOUNTED
    advantage: AdvantageOptions = field(default_factory=AdvantageOptions)

    def __post_init__(self) -> None:
        """Check combinations.

        Raises:
            ConfigError: If another option makes a value meaningless.
        """
        super().__post_init__()
        if self.advantage.bootstrap_truncated and self.credit.gamma == 0:
            raise ConfigError(
                "advantage.bootstrap_truncated adds credit.gamma times a critic's value, got "
                "credit.gamma 0: leave it out"
            )
        if self.credit.kind == "alignment":
            raise ConfigError(
                "credit.kind alignment compares the answers of a group: take a method without a "
                "critic, such as magrpo"
            )
        if self.critic.kind == "value_head" and self.team.conversation:
            raise ConfigError(
                "critic.kind value_head reads the earlier turns of team.conversation true, and "
                "values are kept by observation: set critic.kind separate or central, or leave "
                "team.conversation out"
            )
        whole = ("difference", "leave_one_out", "replay")
        if self.critic.level == "token" and self.credit.kind in whole:
            raise ConfigError(
                f"credit.kind {self.credit.kind} compares whole answers, and critic.level token "
                "has advantages of tokens: leave one of them out"
            )

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that rollouts contain what `credit` compares, and all that a critic learns from.

        Raises:
            ConfigError: If `credit` lacks answers to compare, or tasks are resampled.
        """
        super().check_rollout(rollout)
        if rollout.max_resamples:
            raise ConfigError(
                "group.resample replaces tasks whose answers have equal returns, from which a "
                "critic learns: leave it out"
            )
