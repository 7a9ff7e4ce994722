"""Several environments in one run: one policy learns math problems and Kuhn poker.

python examples/several_environments.py [MODEL]
"""

import sys

import mlrl_learners

ENVS = [
    {"id": "mlrl/math-v2", "weight": 3, "options": {"split": "sample", "max_turns": 1}},
    {"id": "mlrl/kuhn-v0"},
]
learner = mlrl_learners.make(
    "magrpo",
    agents=["solver", "verifier", "player_0", "player_1"],
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    team={"share_weights": True},
    group={"size": 2, "branching": "chain"},
    sampling={"max_new_tokens": 8},
)
result = mlrl_learners.train(
    env=ENVS, learner=learner, iterations=2, tasks_per_iteration=4, run_dir="runs/several"
)
for name in ("math", "kuhn"):
    print(f"{name}: return {result.metrics[f'train/{name}/return']:.3f}")
