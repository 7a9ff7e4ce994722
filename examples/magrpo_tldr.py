"""MAGRPO: two writers retell a post, one in short and one in detail.

python examples/magrpo_tldr.py [MODEL]
"""

import sys

import mlrl_envs
import mlrl_learners

OPTIONS = {
    "split": "sample",  # "train" for the posts of the data set
    "assignment": True,  # sentences about the assignment cost
}
learner = mlrl_learners.make(
    "magrpo",
    agents=mlrl_envs.make("mlrl/tldr-v1", **OPTIONS).possible_agents,
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    sampling={"max_new_tokens": 16},
    group={"size": 4, "joint_mode": "cross"},
)
result = mlrl_learners.train(
    env_id="mlrl/tldr-v1",
    env_options=OPTIONS,
    learner=learner,
    iterations=2,
    tasks_per_iteration=2,
    run_dir="runs/magrpo_tldr",
)
print(f"return {result.metrics['train/return']:.3f}")
