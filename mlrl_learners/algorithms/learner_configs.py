"""Default configurations of the built-in learners, for `mlrl list` and the reference pages."""

from collections.abc import Mapping
from typing import Any

from mlrl_learners.algorithms.actor_critic import CENTRAL_CRITIC, ONE_STEP, ActorCriticConfig
from mlrl_learners.algorithms.madpo import MadpoConfig
from mlrl_learners.algorithms.magrpo import MAREINFORCE, MAREMAX, MARLOO, MagrpoConfig
from mlrl_learners.algorithms.marlhf_config import MarlhfConfig
from mlrl_learners.algorithms.sft import SftConfig
from mlrl_learners.algorithms.single_agent import GRPO, REINFORCE_PP
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options

__all__ = ["LEARNER_CONFIGS", "default_config"]

LEARNER_CONFIGS: Mapping[str, tuple[type, Mapping[str, Any]]] = {
    "magrpo": (MagrpoConfig, {}),
    "mareinforce": (MagrpoConfig, MAREINFORCE),
    "marloo": (MagrpoConfig, MARLOO),
    "maremax": (MagrpoConfig, MAREMAX),
    "ippo": (ActorCriticConfig, {}),
    "mappo": (ActorCriticConfig, CENTRAL_CRITIC),
    "iac": (ActorCriticConfig, ONE_STEP),
    "maac": (ActorCriticConfig, merge_options(ONE_STEP, CENTRAL_CRITIC)),
    "grpo": (MagrpoConfig, GRPO),
    "rloo": (MagrpoConfig, MARLOO),
    "reinforce_pp": (MagrpoConfig, merge_options(MAREINFORCE, REINFORCE_PP)),
    "ppo": (ActorCriticConfig, {}),
    "madpo": (MadpoConfig, {}),
    "dpo": (MadpoConfig, {}),
    "marlhf": (MarlhfConfig, {}),
    "sft": (SftConfig, {}),
}
"""Type of the configuration of each learner, and the options that differ from its defaults."""


def default_config(learner: str) -> Any:  # noqa: ANN401 - one of the configurations
    """Return the configuration that a built-in learner has without options."""
    config_type, options = LEARNER_CONFIGS[learner]
    return build_config(config_type, options)
