"""Two processes train one team on a CPU; each plays and computes a part.

torchrun --nproc-per-node 2 examples/distributed.py [MODEL]
"""

import sys

import mlrl_learners
from mlrl_learners.processes.work_sharing import finish, is_main, start, world

start()
learner = mlrl_learners.make(
    "magrpo",
    agents=["setup", "story"],
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    compute={"device": "cpu"},
    sampling={"max_new_tokens": 16},
)
result = mlrl_learners.train(
    env_id="mlrl/story-v1",
    learner=learner,
    iterations=2,
    tasks_per_iteration=2,
    run_dir="runs/distributed",
)
if is_main():
    print(f"{world().size} processes: return {result.metrics['train/return']:.3f}")
finish()
