"""Kuhn poker: NashConv of self-play with and without a pull towards a reference policy.

Simultaneous gradient ascent cycles in zero-sum games. A KL term makes the last iterate converge, to
the equilibrium of the game with the penalty (Sokota et al., arXiv:2206.05825); a reference that
moves to the last iterate of each stage leads on to an equilibrium of the game itself.
"""

from collections.abc import Mapping
from typing import Any

from benchmarks.games.plans import Method, Plan, Stage
from mlrl_learners.config.option_places import merge_options

__all__ = ["KUHN"]

# All rollouts are whole trees, so that an answer is judged by the mean over what may follow.
TREE: Mapping[str, Any] = {"group": {"size": 4}, "optimizer": {"schedule": "linear", "lr": 3e-4}}
KL: Mapping[str, Any] = {"penalty": {"kl_coef": 0.5, "kl_estimator": "k2"}}
PPO: Mapping[str, Any] = merge_options(
    TREE,
    {"critic": {"kind": "value_head"}, "credit": {"gamma": 1.0}, "advantage": {"gae_lambda": 1.0}},
)
TASKS, UPDATES = 12, 100  # every deal twice per update
ROUNDS, LAST_ROUNDS = 8, 2


def _whole(learner: str, options: Mapping[str, Any]) -> tuple[Stage, ...]:
    return (Stage((ROUNDS + LAST_ROUNDS) * UPDATES, TASKS, learner, options),)


def _staged(learner: str, options: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Return stages with a reference each; the last ones have a lower rate, for less noise."""
    last = merge_options(options, {"optimizer": {"lr": options["optimizer"]["lr"] / 3}})
    return (
        Stage(UPDATES, TASKS, learner, options, rounds=ROUNDS),
        Stage(UPDATES, TASKS, learner, last, rounds=LAST_ROUNDS),
    )


KUHN = Plan(
    env_id="mlrl/kuhn-v0",
    env={"num_tasks": 6},
    scripts=("random", "cautious"),
    measure="nash_conv",
    shown="nash_conv",
    goal=0.1,
    references={"uniform play": 11 / 12, "goal": 0.1},
    methods={
        "magrpo": Method(_whole("magrpo", TREE), "`magrpo`"),
        "magrpo-kl": Method(
            _whole("magrpo", merge_options(TREE, KL)), "`magrpo`, `kl_coef` 0.5, one reference"
        ),
        "magrpo-moving-kl": Method(
            _staged("magrpo", merge_options(TREE, KL)),
            "`magrpo`, `kl_coef` 0.5, a reference per stage",
        ),
        "ippo": Method(_whole("ippo", PPO), "`ippo`"),
        "ippo-moving-kl": Method(
            _staged("ippo", merge_options(PPO, KL)), "`ippo`, `kl_coef` 0.5, a reference per stage"
        ),
    },
)
