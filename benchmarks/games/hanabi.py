"""Hanabi with two colours: the score of a team against that of the scripted convention."""

from collections.abc import Mapping
from typing import Any

from benchmarks.games.model import ModelSize
from benchmarks.games.plans import Method, Plan, Stage

__all__ = ["HANABI"]

PPO: Mapping[str, Any] = {
    "group": {"size": 1},
    "optimizer": {"lr": 3e-4, "schedule": "linear"},
    "credit": {"gamma": 1.0},
    "critic": {"kind": "value_head"},
    "penalty": {"kl_coef": 0.01, "kl_estimator": "k2"},
    "compute": {"max_rows": 128, "micro_batch_tokens": 8192},
}

HANABI = Plan(
    env_id="mlrl/hanabi-v0",
    env={"variant": "small"},
    scripts=("convention",),
    games=1000,
    sft=1200,
    sft_options={"optimizer": {"lr": 1e-3}, "compute": {"micro_batch_tokens": 8192}},
    measure="score",
    shown="score",
    points=5,
    # Mean scores of the scripts on the tasks of the measure.
    references={"scripted convention": 5.855, "script that sees its own cards": 9.2},
    size=ModelSize(hidden_size=96, num_layers=3, max_tokens=768),
    methods={"ippo": Method((Stage(400, 16, "ippo", PPO),), "`ippo`")},
)
