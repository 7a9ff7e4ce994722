"""Single-agent methods (GRPO, RLOO, REINFORCE++, PPO, DPO) as settings of the team's learners.

Sources: GRPO (arXiv 2402.03300), RLOO (arXiv 2402.14740), REINFORCE++ (arXiv 2501.03262),
PPO (arXiv 1707.06347), DPO (arXiv 2305.18290).
"""

from collections.abc import Sequence
from typing import Any

from mlrl_learners.algorithms.actor_critic import ActorCritic, make_ippo
from mlrl_learners.algorithms.madpo import Madpo, make_madpo
from mlrl_learners.algorithms.magrpo import Magrpo, make_magrpo, make_mareinforce, make_marloo
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.types import AgentID

__all__ = ["make_dpo", "make_grpo", "make_ppo", "make_reinforce_pp", "make_rloo"]

GRPO = {"loss": {"kind": "grpo"}, "baseline": {"normalize_std": True}}
REINFORCE_PP = {"loss": {"kind": "token_mean"}, "baseline": {"normalize_batch": True}}


def make_grpo(*, agents: Sequence[AgentID], **options: Any) -> Magrpo:  # noqa: ANN401
    """Build GRPO: advantages divided by the group's deviation, mean over tokens, clipped ratios.

    This and the other functions of this module take the options of their team's method.

    Raises:
        ConfigError: If there are several agents; as in all functions of this module.
    """
    _require_one(agents, "grpo", instead="magrpo")
    return make_magrpo(agents=agents, **merge_options(GRPO, options))


def make_rloo(*, agents: Sequence[AgentID], **options: Any) -> Magrpo:  # noqa: ANN401
    """Build RLOO: leave-one-out baseline, sum over tokens, no clipping."""
    _require_one(agents, "rloo", instead="marloo")
    return make_marloo(agents=agents, **options)


def make_reinforce_pp(*, agents: Sequence[AgentID], **options: Any) -> Magrpo:  # noqa: ANN401
    """Build REINFORCE++: returns normalised over the batch, mean over all tokens, clipped."""
    _require_one(agents, "reinforce_pp", instead="mareinforce")
    return make_mareinforce(agents=agents, **merge_options(REINFORCE_PP, options))


def make_ppo(*, agents: Sequence[AgentID], **options: Any) -> ActorCritic:  # noqa: ANN401
    """Build PPO; options are those of `make_ippo`."""
    _require_one(agents, "ppo", instead="ippo")
    return make_ippo(agents=agents, **options)


def make_dpo(*, agents: Sequence[AgentID], **options: Any) -> Madpo:  # noqa: ANN401
    """Build DPO; options are those of `make_madpo`."""
    _require_one(agents, "dpo", instead="madpo")
    return make_madpo(agents=agents, **options)


def _require_one(agents: Sequence[AgentID], name: str, *, instead: str) -> None:
    if len(agents) != 1:
        named = ", ".join(agents)
        raise ConfigError(
            f"{name} trains one agent, got {len(agents)} ({named}): take {instead}, its form for "
            "teams, or an environment for one agent, such as mlrl/humaneval-v1 with num_aux=0"
        )
