"""Configuration of MARLHF: options of the reward model, and checks of the method's options."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mlrl_learners.algorithms.actor_critic import ActorCriticConfig
from mlrl_learners.algorithms.magrpo import MagrpoConfig
from mlrl_learners.algorithms.policy_gradient_options import CreditOptions
from mlrl_learners.algorithms.preference_options import (
    RewardModelOptions,
    ValidatedPreferenceOptions,
)
from mlrl_learners.algorithms.rollout_pairs import check_choice
from mlrl_learners.config.groups import build_config, check_known
from mlrl_learners.config.option_places import merge_options, place_of
from mlrl_learners.config.options import check_unread
from mlrl_learners.errors import ConfigError
from mlrl_learners.types import RolloutConfig

__all__ = ["MarlhfConfig", "Method", "split_options"]

Method = Literal[
    "magrpo", "mareinforce", "marloo", "maremax", "grpo", "rloo", "reinforce_pp",
    "ippo", "mappo", "iac", "maac", "ppo",
]  # fmt: skip
WITH_CRITIC = ("ippo", "mappo", "iac", "maac", "ppo")


@dataclass(frozen=True)
class MarlhfConfig:
    """Which method is trained on scores; all groups but those of the scores are its own.

    Attributes:
        method: Policy-gradient method that is trained on the scores of the reward model.
        reward_model: Training of the reward model.
        preferences: Pairs of joint answers that it is trained on.
    """

    method: Method = "magrpo"
    reward_model: RewardModelOptions = field(default_factory=RewardModelOptions)
    preferences: ValidatedPreferenceOptions = field(default_factory=ValidatedPreferenceOptions)

    def __post_init__(self) -> None:
        """Check combinations.

        Raises:
            ConfigError: If another option makes a value meaningless.
        """
        if self.preferences.episodes:
            reason = "preferences.episodes, whose turns are ranked undiscounted: leave it out"
            check_unread(self.preferences, ("gamma",), reason, "preferences.")
        elif self.preferences.held_out:
            reason = "no episodes, since pairs just played are new: give a file as episodes"
            check_unread(self.preferences, ("held_out",), reason, "preferences.")


def split_options(options: Mapping[str, Any]) -> tuple[MarlhfConfig, dict[str, Any]]:
    """Return the configuration of the reward model, and the options of the method.

    Args:
        options: Options of MARLHF and of its method, in groups.

    Raises:
        UnknownNameError: If an option is neither one of MARLHF nor one of the method.
        ConfigError: If a value has the wrong type or is outside its range, or an option has no
            meaning with scores as rewards.
    """
    check_known(options, ActorCriticConfig, MagrpoConfig, MarlhfConfig)
    mine = {each.name for each in dataclasses.fields(MarlhfConfig)}
    own = {
        name: value
        for name, value in options.items()
        if name in mine or (place_of(name, mine) or "").partition(".")[0] in mine
    }
    config = build_config(MarlhfConfig, own)
    rest = {name: value for name, value in options.items() if name not in own}
    _check_method_options(rest, config.method)
    if not config.preferences.episodes and _asked_group_size(rest) == 1:
        check_choice(RolloutConfig(1))
    credit = rest.get("credit", {})
    if isinstance(credit, CreditOptions):
        return config, {**rest, "credit": dataclasses.replace(credit, gamma=0.0)}
    if not isinstance(credit, Mapping):  # an old option, which the method refuses
        return config, rest
    return config, merge_options(rest, {"credit": {"gamma": 0.0}})


def _asked_group_size(options: Mapping[str, Any]) -> object:
    """Return the number of answers to a prompt that is asked for, if it is."""
    group = options.get("group", {})
    asked = group.get("size") if isinstance(group, Mapping) else getattr(group, "size", None)
    return options.get("group_size", asked)


def _check_method_options(options: Mapping[str, Any], method: Method) -> None:
    """Check that the options of a method have a meaning with scores as rewards."""
    for name in ("critic", "advantage"):
        if method not in WITH_CRITIC and name in options:
            raise ConfigError(f"{name} is a group of {', '.join(WITH_CRITIC)}, got method {method}")
    credit, advantage = (options.get(name, {}) for name in ("credit", "advantage"))
    if isinstance(advantage, Mapping) and "gae_lambda" in advantage:
        raise ConfigError(
            f"advantage.gae_lambda {advantage['gae_lambda']} means nothing for marlhf, whose "
            "scores are not added up over turns: leave it out"
        )
    if isinstance(credit, Mapping) and "gamma" in credit:
        raise ConfigError(
            f"credit.gamma {credit['gamma']} means nothing for marlhf, whose scores are not added "
            "up over turns: leave it out, or set preferences.gamma"
        )
    kind = credit.get("kind") if isinstance(credit, Mapping) else getattr(credit, "kind", None)
    if kind in ("outcome", "quality", "margin", "alignment"):
        raise ConfigError(
            "credit.kind must be shared, team, mixed, difference, leave_one_out or replay for "
            f"marlhf, got {kind}: a score is of all that comes of a joint answer, and scores of "
            "other turns are not rewards before or after it"
        )
    baseline = options.get("baseline", {})
    parts = getattr(baseline, "components", None)
    if parts or (isinstance(baseline, Mapping) and baseline.get("components")):
        raise ConfigError(
            "baseline.components are parts of the environment's reward, and marlhf trains on "
            "scores: leave it out"
        )
