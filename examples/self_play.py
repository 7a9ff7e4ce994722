"""Self-play: one seat of a game is played by past weights of the learner.

python examples/self_play.py [MODEL]
"""

import sys

import mlrl_learners
from mlrl_learners.config.opponents import OpponentsConfig

learner = mlrl_learners.make(
    "magrpo",
    agents=["player_0", "player_1"],
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    team={"share_weights": True},
    group={"branching": "chain"},
    sampling={"max_new_tokens": 8},
)
result = mlrl_learners.train(
    env_id="mlrl/kuhn-v0",
    learner=learner,
    iterations=3,
    tasks_per_iteration=2,
    run_dir="runs/self_play",
    opponents=OpponentsConfig(agents={"player_1": "snapshots"}, snapshot_every=1),
)
print(f"return {result.metrics['train/return']:.3f}")
