"""Liar's dice with a die of three faces each: NashConv of self-play, as in Kuhn poker.

Games have up to seven moves, so that whole trees would be large: each game is played once, and a
critic judges the answers.
"""

from collections.abc import Mapping
from typing import Any

from benchmarks.games.plans import Method, Plan, Stage
from mlrl_learners.config.option_places import merge_options

__all__ = ["LIARS_DICE"]

PPO: Mapping[str, Any] = {
    "group": {"size": 1},
    "critic": {"kind": "value_head"},
    "credit": {"gamma": 1.0},
    "advantage": {"gae_lambda": 0.9, "normalize": False},
    "optimizer": {"lr": 3e-4, "epochs": 2, "num_minibatches": 4},
    "compute": {"max_rows": 256, "micro_batch_tokens": 8192},
}
KL: Mapping[str, Any] = {"penalty": {"kl_coef": 0.5, "kl_estimator": "k2"}}
FALLING: Mapping[str, Any] = {"optimizer": {"schedule": "linear"}}
TASKS, UPDATES, ROUNDS = 256, 40, 9


def _staged() -> tuple[Stage, ...]:
    """Return stages with a reference each; in the last the rate falls to 0, for less noise."""
    options = merge_options(PPO, KL)
    return (
        Stage(UPDATES, TASKS, "ippo", options, rounds=ROUNDS - 1),
        Stage(UPDATES, TASKS, "ippo", merge_options(options, FALLING)),
    )


LIARS_DICE = Plan(
    env_id="mlrl/liars-dice-v0",
    env={"faces": 3},
    # What is left: the own seat and die, and the bids so far.
    unread=(r"^Liar's dice\.[^\n]*", r"^Moves: [^\n]*", r"Answer with one[^\n]*$"),
    # Honest play depends on the own die, which teaches the model to read it.
    scripts=("random", "honest"),
    games=2000,
    sft=400,
    measure="nash_conv",
    shown="nash_conv",
    goal=0.1,
    references={"uniform play": 1.436, "script honest": 1.111, "goal": 0.1},
    points=1,
    methods={
        "ippo-moving-kl": Method(_staged(), "`ippo`, `kl_coef` 0.5, a reference per stage"),
        "ippo": Method(
            (Stage(ROUNDS * UPDATES, TASKS, "ippo", merge_options(PPO, FALLING)),), "`ippo`"
        ),
    },
)
