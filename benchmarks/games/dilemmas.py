"""Matrix games and public goods: which outcome is learnt with which credit."""

from collections.abc import Mapping
from typing import Any

from benchmarks.games.plans import Method, Plan, Stage
from mlrl_learners.config.option_places import merge_options

__all__ = ["MATRIX", "PUBLIC_GOODS"]

CREDITS: Mapping[str, str] = {
    "own": "shared",
    "difference": "difference",
    "leave-one-out": "leave_one_out",
    "team": "team",
}
MATRICES = ("prisoners-dilemma", "stag-hunt", "chicken", "coordination")
# Nothing else keeps the form of answers, which the measure reads: the payoff of a move is the same
# without its tag. The penalty costs some giving in public goods, where payoffs are close together.
OPTIONS: Mapping[str, Any] = {
    "optimizer": {"lr": 1e-3, "schedule": "linear"},
    "group": {"joint_mode": "cross"},
    "penalty": {"kl_coef": 0.02, "kl_estimator": "k2"},
}


def _stage(credit: str, group_size: int, tasks: int, updates: int) -> tuple[Stage, ...]:
    options = merge_options(
        OPTIONS, {"group": {"size": group_size}, "credit": {"kind": CREDITS[credit]}}
    )
    return (Stage(updates, tasks, "magrpo", options),)


MATRIX = Plan(
    env_id="mlrl/matrix-v0",
    env={"rounds": 1},
    variants=tuple({"matrix": name} for name in MATRICES),
    games=200,
    measure="outcome",
    shown="cooperation",
    methods={
        f"{matrix}-{credit}": Method(
            _stage(credit, 4, 4, 60),
            f"{matrix}, `credit: {CREDITS[credit]}`",
            {"matrix": matrix},
            panel=matrix,
        )
        for matrix in MATRICES
        for credit in CREDITS
    },
)

PUBLIC_GOODS = Plan(
    env_id="mlrl/public-goods-v0",
    env={"rounds": 1},
    games=200,
    measure="outcome",
    shown="given",
    methods={
        credit: Method(_stage(credit, 3, 4, 100), f"`credit: {CREDITS[credit]}`")
        for credit in CREDITS
    },
)
