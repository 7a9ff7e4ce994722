"""DPO from preferences: pairs are made of collected episodes by their returns.

python examples/dpo_preferences.py [MODEL]
"""

import sys

import mlrl_learners

ENV_ID, OPTIONS = "mlrl/humaneval-v1", {"split": "sample", "num_aux": 0, "max_turns": 1}
learner = mlrl_learners.make(
    "dpo",
    agents=["main"],
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    group={"size": 4},
    preferences={"num_pairs": 2},
    sampling={"max_new_tokens": 16},
)
result = mlrl_learners.train(
    env_id=ENV_ID,
    env_options=OPTIONS,
    learner=learner,
    iterations=2,
    tasks_per_iteration=2,
    run_dir="runs/dpo_preferences",
)
print(f"return {result.metrics['train/return']:.3f}")
