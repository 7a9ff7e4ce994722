"""Hanabi with two colours: the score of a team against that of the scripted convention."""

import math
from collections.abc import Mapping
from typing import Any

from benchmarks.games.model import ModelSize
from benchmarks.games.plans import Method, Plan, Stage

__all__ = ["HANABI"]

# As in tic-tac-toe, imitation leaves a policy that is nearly sure of each move: small steps, and a
# critic of its own.
PPO: Mapping[str, Any] = {
    "group": {"size": 1},
    "credit": {"gamma": 1.0},
    "advantage": {"gae_lambda": 0.9},
    "critic": {"kind": "separate", "lr": 1e-3, "value_coef": 1.0, "value_clip": math.inf},
    "penalty": {"kl_coef": 0.05, "kl_estimator": "k2"},
    "optimizer": {"lr": 3e-4, "epochs": 2, "num_minibatches": 4, "schedule": "linear"},
    "compute": {"max_rows": 256, "micro_batch_tokens": 8192},
}
# One wrong card loses all points, so that most games of a beginner pay nothing.
KEEP_SCORE: Mapping[str, Any] = {"keep_score": True}

HANABI = Plan(
    env_id="mlrl/hanabi-v0",
    env={"variant": "small"},
    # The rest: fireworks, hint tokens, deck, discarded cards, and the hands with what each player
    # knows about them, which follows from the history.
    unread=(
        r"^Hanabi: you are [^\n]*",
        r"^(You|player_\d): (hint|played|discarded) [^\n]*",
        r"Moves: [^\n]*",
        r"Answer with one[^\n]*$",
        r"Lives: \d+",
        r"Fireworks|Hint tokens|Deck|Your|knows",
        r"[:,.\[\])]",
    ),
    scripts=("convention",),
    games=10000,
    sft=2500,
    sft_options={"examples": {"batch_size": 256}, "compute": {"micro_batch_tokens": 8192}},
    measure="score",
    shown="score",
    points=5,
    # Mean scores of the scripts on the tasks of the measure.
    references={"scripted convention": 5.855, "script that sees its own cards": 9.2},
    size=ModelSize(hidden_size=64, num_layers=3),
    methods={
        "ippo": Method(
            (
                Stage(50, 64, "ippo", PPO, env=KEEP_SCORE),
                Stage(50, 64, "ippo", PPO),
            ),
            "`ippo`, `kl_coef` 0.05; first with `keep_score`",
        )
    },
)
