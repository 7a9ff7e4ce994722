"""An environment on another machine, or in another process of this one.

    mlrl serve env mlrl/story-v1 --port 50051
    python examples/remote_environment.py 127.0.0.1:50051 [MODEL]

Runs on servers have the same results as local ones.
"""

import sys

import mlrl_learners

if len(sys.argv) < 2:
    sys.exit(__doc__)
learner = mlrl_learners.make(
    "magrpo",
    agents=["setup", "story"],
    model=sys.argv[2] if len(sys.argv) > 2 else "tiny-random",
    sampling={"max_new_tokens": 16},
)
result = mlrl_learners.train(
    env_id="mlrl/story-v1",
    env_server=sys.argv[1],
    learner=learner,
    iterations=2,
    run_dir="runs/remote",
)
print(f"return {result.metrics['train/return']:.3f}")
