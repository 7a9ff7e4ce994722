"""IPPO: two writers, each with a critic of its own.

python examples/ippo_story.py [MODEL]
"""

import sys

import mlrl_envs
import mlrl_learners

OPTIONS = {"split": "train"}
learner = mlrl_learners.make(
    "ippo",
    agents=mlrl_envs.make("mlrl/story-v1", **OPTIONS).possible_agents,
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    sampling={"max_new_tokens": 16},
    optimizer={"epochs": 2},
)
result = mlrl_learners.train(
    env_id="mlrl/story-v1",
    env_options=OPTIONS,
    learner=learner,
    iterations=2,
    tasks_per_iteration=2,
    run_dir="runs/ippo_story",
)
print(f"return {result.metrics['train/return']:.3f}")
