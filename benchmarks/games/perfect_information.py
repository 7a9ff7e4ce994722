"""Nim and tic-tac-toe: how much of optimal play self-play finds, over all positions."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.games.model import ModelSize
from benchmarks.games.plans import Method, Plan, Stage
from mlrl_learners.config.option_places import merge_options

__all__ = ["NIM", "TICTACTOE"]

# The KL term keeps the form of answers and tries all moves, so that play does not settle on a few
# lines; an entropy bonus would be paid for a loose form. The most probable move of the equilibrium
# of the game with this penalty is optimal, because a win pays 1 and a loss -1.
GAME: Mapping[str, Any] = {
    "optimizer": {"lr": 2e-3, "schedule": "linear"},
    "credit": {"gamma": 1.0},
    "penalty": {"kl_coef": 0.1, "kl_estimator": "k2"},
}
TREE: Mapping[str, Any] = merge_options(GAME, {"group": {"size": 2}})
PPO: Mapping[str, Any] = merge_options(
    GAME,
    {
        "group": {"size": 1},
        "critic": {"kind": "value_head"},
        "advantage": {"normalize": False},
    },
)

# Updates for each value of an option of the environment, easy games first, so that what follows a
# move is played well: (value, rollouts, updates).
Parts = Sequence[tuple[int, int, int]]


def _stages(
    option: str, parts: Parts, learner: str, options: Mapping[str, Any]
) -> tuple[Stage, ...]:
    return tuple(
        Stage(updates, tasks, learner, options, env={option: value})
        for value, tasks, updates in parts
    )


PILES: Parts = ((1, 16, 50), (2, 16, 150), (3, 16, 200), (4, 16, 400))
PILES_OF_GAMES: Parts = tuple((largest, 64, updates) for largest, _, updates in PILES)

NIM = Plan(
    env_id="mlrl/nim-v0",
    scripts=("random", "greedy"),
    measure="perfect",
    shown="perfect",
    goal=1.0,
    max_new_tokens=6,
    sft=400,
    points=5,
    methods={
        "magrpo": Method(
            _stages("max_pile", PILES, "magrpo", TREE), "`magrpo`, trees of two answers"
        ),
        "ippo": Method(_stages("max_pile", PILES_OF_GAMES, "ippo", PPO), "`ippo`"),
    },
)

OPENINGS: Parts = ((4, 16, 600), (3, 8, 400), (2, 4, 400), (1, 2, 300), (0, 2, 300))
OPENINGS_OF_GAMES: Parts = tuple((moves, 64, 400) for moves in (4, 3, 2, 1, 0))

TICTACTOE = Plan(
    env_id="mlrl/tictactoe-v0",
    scripts=("random", "greedy"),
    measure="perfect",
    shown="perfect",
    goal=1.0,
    max_new_tokens=3,
    size=ModelSize(hidden_size=96, num_layers=3),
    variants=({}, {"opening_moves": 2}),
    games=2000,
    sft=600,
    points=2,
    methods={
        "magrpo": Method(
            _stages("opening_moves", OPENINGS, "magrpo", TREE),
            "`magrpo`, trees, after 4 to 0 random moves",
        ),
        "ippo": Method(
            _stages("opening_moves", OPENINGS_OF_GAMES, "ippo", PPO),
            "`ippo`, after 4 to 0 random moves",
        ),
    },
)
