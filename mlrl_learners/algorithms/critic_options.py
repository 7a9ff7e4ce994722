"""Option groups of methods with critics."""

import math
from dataclasses import dataclass
from typing import Literal

from mlrl_learners.algorithms.critic_inputs import CriticKind
from mlrl_learners.config.options import check_unread
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import ModelSource

__all__ = ["AdvantageOptions", "CriticOptions"]


@dataclass(frozen=True)
class CriticOptions:
    """Which critic: the model that estimates values, the baseline, and its loss.

    Attributes:
        kind: `"separate"` (a model or adapter per policy that reads the agent's observation),
            `"value_head"` (a head on the policy, in the same forward pass; not with
            `team.conversation`) or `"central"` (one model or adapter that reads the observations of
            all agents).
        model: Model that critics with a model of their own start from; null for the policy's.
        lr: Peak learning rate of the critics, of the heads for `value_head`, above 0; null for
            `optimizer.lr`.
        value_coef: Weight of the value loss, which is half the squared error, at least 0.
        value_clip: Largest change of a value from its value at sampling time that the value loss
            counts, in units of the return, above 0; `inf` disables it (arXiv 2005.12729).
        normalize: The critic estimates returns minus their mean over all updates, divided by their
            deviation, so that its loss and `value_clip` do not depend on the scale of the rewards
            (PopArt, arXiv 1602.07714).
        level: What an action is. `turn`: a whole answer, with one value before it. `token`: each
            token, with a value before each and advantages over tokens (arXiv 2203.02155).
    """

    kind: CriticKind = "separate"
    model: ModelSource | None = None
    lr: float | None = None
    value_coef: float = 0.5
    value_clip: float = 0.2
    normalize: bool = False
    level: Literal["turn", "token"] = "turn"

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range, or has no effect beside another.
        """
        if self.kind not in ("separate", "value_head", "central"):
            raise ConfigError(f"kind must be separate, value_head or central, got {self.kind!r}")
        if not 0 <= self.value_coef < math.inf:
            raise ConfigError(f"value_coef must be at least 0, got {self.value_coef}")
        if not self.value_clip > 0:
            raise ConfigError(f"value_clip must be above 0, got {self.value_clip}")
        if self.lr is not None and not 0 < self.lr < math.inf:
            raise ConfigError(f"lr must be above 0, got {self.lr}")
        if self.kind == "value_head" and self.model is not None:
            raise ConfigError("a value_head has no model of its own: leave critic.model out")
        if not self.value_coef:
            reason = "value_coef 0, with which no critic learns: set value_coef above 0"
            check_unread(self, ("lr", "model", "normalize", "level"), reason)


@dataclass(frozen=True)
class AdvantageOptions:
    """What is an advantage: how values and rewards of several turns are combined.

    Attributes:
        gae_lambda: Mixing of n-step advantages over an agent's own decisions, or over tokens with
            `critic.level: token`, from 0 (one-step
            temporal differences) to 1 (whole returns); lambda of GAE (arXiv 1506.02438).
        bootstrap_truncated: Adds the critic's value of the next observation where an artificial
            turn limit ends the episode (arXiv 1712.00378); the environment must declare its limit
            artificial (`metadata["artificial_limit"]`), any other limit ends the task.
        normalize: Shifts and scales the advantages of a policy to mean 0 and deviation 1 in each
            update; value targets keep the scale of the rewards.
    """

    gae_lambda: float = 0.95
    bootstrap_truncated: bool = False
    normalize: bool = True

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        if not 0 <= self.gae_lambda <= 1:
            raise ConfigError(f"gae_lambda must be in [0, 1], got {self.gae_lambda}")
