"""GRPO on math: one solver learns beside a verifier whose weights are frozen.

python examples/grpo_math.py [MODEL]
"""

import sys

import mlrl_envs
import mlrl_learners

OPTIONS = {"split": "train", "levels": [1], "max_turns": 1}
learner = mlrl_learners.make(
    "magrpo",
    agents=mlrl_envs.make("mlrl/math-v2", **OPTIONS).possible_agents,
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    sampling={"max_new_tokens": 16},
    team={"frozen": ["verifier"]},
    group={"size": 4},
)
result = mlrl_learners.train(
    env_id="mlrl/math-v2",
    env_options=OPTIONS,
    learner=learner,
    iterations=2,
    tasks_per_iteration=2,
    run_dir="runs/grpo_math",
)
print(f"return {result.metrics['train/return']:.3f}")
