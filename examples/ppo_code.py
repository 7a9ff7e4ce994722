"""PPO on code: one agent writes a function and revises it after feedback.

python examples/ppo_code.py [MODEL]
"""

import sys

import mlrl_envs
import mlrl_learners

OPTIONS = {"split": "sample", "num_aux": 0, "max_turns": 2}
learner = mlrl_learners.make(
    "ppo",
    agents=mlrl_envs.make("mlrl/humaneval-v1", **OPTIONS).possible_agents,
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    group={"size": 2},
    sampling={"max_new_tokens": 16},
)
result = mlrl_learners.train(
    env_id="mlrl/humaneval-v1",
    env_options=OPTIONS,
    learner=learner,
    iterations=2,
    tasks_per_iteration=2,
    run_dir="runs/ppo_code",
)
print(f"return {result.metrics['train/return']:.3f}")
