"""Configurations of the built-in learners without models, for pages, lists and early checks."""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_learners.algorithms.actor_critic import CENTRAL_CRITIC, ONE_STEP, ActorCriticConfig
from mlrl_learners.algorithms.madpo import MadpoConfig
from mlrl_learners.algorithms.magrpo import MAREINFORCE, MAREMAX, MARLOO, MagrpoConfig
from mlrl_learners.algorithms.marlhf_config import MarlhfConfig, split_options
from mlrl_learners.algorithms.sft import SftConfig
from mlrl_learners.algorithms.single_agent import GRPO, REINFORCE_PP
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.registry import registry
from mlrl_learners.types import AgentID

__all__ = ["LEARNER_CONFIGS", "default_config", "team_config"]

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


def team_config(learner: str, options: Mapping[str, Any], agents: Sequence[AgentID]) -> Any:  # noqa: ANN401 - as default_config
    """Return the configuration of the team that a built-in learner trains, without its models.

    Raises:
        UnknownNameError: If an option is unknown.
        ConfigError: If a value has the wrong type or is outside its range, or the learner trains
            fewer agents.
    """
    most = registry[learner].max_agents
    if most is not None and len(agents) > most:
        raise ConfigError(f"{learner} trains one agent, got {len(agents)} ({', '.join(agents)})")
    if learner == "marlhf":
        config, rest = split_options(options)
        return team_config(config.method, rest, agents)
    config_type, defaults = LEARNER_CONFIGS[learner]
    return build_config(config_type, merge_options(defaults, options))
