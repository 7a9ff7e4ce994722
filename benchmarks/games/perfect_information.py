"""Nim, tic-tac-toe, Connect Four: how much of optimal play self-play finds, over all positions."""

import math
from collections.abc import Mapping
from typing import Any

from benchmarks.games.model import ModelSize
from benchmarks.games.plans import Method, Plan, Stage
from mlrl_learners.config.option_places import merge_options

__all__ = ["CONNECT_FOUR", "NIM", "TICTACTOE"]

# With a critic every move of a game is informative: one answer per position is enough, while the
# groups of a tree are mostly decided already. A short horizon (`gae_lambda`) keeps the noise of
# later moves out. The KL term keeps the form of answers, and moves of the losing side random, so
# that all positions are visited.
PPO: Mapping[str, Any] = {
    "group": {"size": 1},
    "critic": {"kind": "value_head"},
    "credit": {"gamma": 1.0},
    "advantage": {"gae_lambda": 0.5, "normalize": False},
    "loss": {"clip_high": 0.5},
    "optimizer": {"lr": 1e-3, "epochs": 2, "num_minibatches": 4},
    "compute": {"max_rows": 256, "micro_batch_tokens": 8192},
}
KL: Mapping[str, Any] = {"penalty": {"kl_coef": 1.0, "kl_estimator": "k2"}}
FALLING: Mapping[str, Any] = {"optimizer": {"schedule": "linear"}}
RANDOM_START: Mapping[str, Any] = {"random_start": True}
SMALL: Mapping[str, Any] = {"max_pile": 3}
# Where the policy is nearly sure, gradients are small, and Adam scales their noise up to full
# steps: a larger learning rate costs moves that imitation had taught. So do the first gradients of
# a value head, which go through the weights of the policy; the critic is a model of its own. The
# best moves are the most probable ones in the equilibrium with this penalty, and the others are
# still tried.
NEARLY_SURE: Mapping[str, Any] = merge_options(
    PPO,
    FALLING,
    {
        "advantage": {"gae_lambda": 0.8},
        "critic": {"kind": "separate", "lr": 2e-3, "value_coef": 1.0, "value_clip": math.inf},
        "penalty": {"kl_coef": 0.3, "kl_estimator": "k2"},
        "optimizer": {"lr": 3e-4},
    },
)
TREE: Mapping[str, Any] = merge_options(
    KL,
    {
        "group": {"size": 2},
        "credit": {"gamma": 1.0},
        "optimizer": {"lr": 3e-4, "schedule": "linear"},
    },
)


def _staged(tasks: int, updates: int, rounds: int, env: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Return stages with a reference each; in the last the rate falls to 0, for less noise."""
    options = merge_options(PPO, KL)
    return (
        Stage(updates, tasks, "ippo", options, rounds=rounds - 1, env=env),
        Stage(updates, tasks, "ippo", merge_options(options, FALLING), env=env),
    )


def _whole(tasks: int, updates: int, env: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Return one stage without a KL term."""
    return (Stage(updates, tasks, "ippo", merge_options(PPO, FALLING), env=env),)


NIM = Plan(
    env_id="mlrl/nim-v0",
    scripts=("random",),
    measure="perfect",
    shown="perfect",
    goal=1.0,
    max_new_tokens=6,
    sft=400,
    points=2,
    methods={
        "ippo-moving-kl": Method(
            _staged(128, 20, 18, RANDOM_START),
            "`ippo`, `kl_coef` 1, a reference per stage",
            env=SMALL,
            panel="piles of up to 3",
        ),
        "ippo": Method(
            _whole(128, 360, RANDOM_START), "`ippo`", env=SMALL, panel="piles of up to 3"
        ),
        "magrpo": Method(
            (Stage(60, 8, "magrpo", TREE),),
            "`magrpo`, `kl_coef` 1, trees of two answers",
            env=SMALL,
            panel="piles of up to 3",
        ),
        "ippo-moving-kl-4": Method(
            _staged(128, 20, 18, RANDOM_START),
            "`ippo`, `kl_coef` 1, a reference per stage; piles of up to 4",
            panel="piles of up to 4",
        ),
    },
)

TICTACTOE = Plan(
    env_id="mlrl/tictactoe-v0",
    # What is left: the own mark, and the board.
    unread=(
        r"^Tic-tac-toe\. Three in a row win\. You play",
        r"Moves: [0-9, ]+",
        r"Answer with one.*$",
    ),
    # Completes or blocks a line, and else plays at random: what it does not play at random is
    # optimal, and what it does is to be learnt. Random starts show all positions with a line.
    scripts=("greedy",),
    measure="perfect",
    shown="perfect",
    goal=1.0,
    max_new_tokens=3,
    size=ModelSize(hidden_size=64, num_layers=3),
    variants=(RANDOM_START,),
    games=40000,
    sft=2500,
    sft_options={"examples": {"batch_size": 256}},
    points=12,
    methods={
        "ippo": Method(
            (Stage(240, 256, "ippo", NEARLY_SURE, rounds=3, env=RANDOM_START),),
            "`ippo`, `kl_coef` 0.3, a reference per stage, random starts",
        ),
    },
)

CONNECT_FOUR = Plan(
    env_id="mlrl/connect-four-v0",
    env={"rows": 3, "columns": 4, "connect": 3},
    # What is left: the own mark, and the board.
    unread=(
        r"^Connect Four\. [^\n]* You play",
        r"^1 2 3 4$",
        r"^Moves: [^\n]*",
        r"Answer with one[^\n]*$",
    ),
    # As in tic-tac-toe: completes or blocks a row, and else plays at random.
    scripts=("greedy",),
    measure="perfect",
    shown="perfect",
    goal=1.0,
    max_new_tokens=3,
    size=ModelSize(hidden_size=64, num_layers=3),
    variants=tuple({"opening_moves": number} for number in (0, 2, 4)),
    games=8000,
    sft=1600,
    sft_options={"examples": {"batch_size": 256}},
    points=4,
    methods={
        "ippo": Method(
            (Stage(80, 256, "ippo", NEARLY_SURE, env={"opening_moves": 4}),),
            "`ippo`, `kl_coef` 0.3, after four random moves",
        ),
    },
)
