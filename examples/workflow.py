"""A workflow of three nodes, all of them trained: a writer, a critic and a reviser.

python examples/workflow.py [MODEL]
"""

import sys

import mlrl_envs
import mlrl_learners

OPTIONS = {
    "split": "sample",
    "num_aux": 0,
    "max_turns": 1,
    "workflow": {
        "nodes": {
            "writer": {},
            "critic": {"reads": ["writer"], "role": "Do not answer: name mistakes."},
            "reviser": {"reads": ["writer", "critic"]},
        }
    },
}
learner = mlrl_learners.make(
    "mappo",
    agents=mlrl_envs.make("mlrl/humaneval-v1", **OPTIONS).possible_agents,
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    group={"size": 2, "branching": "chain"},  # a tree grows with every step of the graph
    sampling={"max_new_tokens": 16},
)
result = mlrl_learners.train(
    env_id="mlrl/humaneval-v1",
    env_options=OPTIONS,
    learner=learner,
    iterations=2,
    tasks_per_iteration=2,
    run_dir="runs/workflow",
)
print(f"return {result.metrics['train/return']:.3f}")
