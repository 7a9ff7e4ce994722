"""SFT, then PPO: a team learns from collected answers, and goes on from its weights.

python examples/sft_to_ppo.py [MODEL]
"""

import sys
from pathlib import Path

import mlrl_learners
from mlrl_learners.actors import ReferenceActor
from mlrl_learners.evaluation.collect import collect

ENV_ID, AGENTS = "mlrl/math-v2", ["solver", "verifier"]
OPTIONS = {"levels": [1], "max_turns": 1}
model = sys.argv[1] if len(sys.argv) > 1 else "tiny-random"
examples, weights = Path("runs/references.jsonl"), Path("runs/sft_weights")
examples.parent.mkdir(exist_ok=True)
collect(env_id=ENV_ID, actor=ReferenceActor(), env_options=OPTIONS, out=examples, tasks=4)

teacher = mlrl_learners.make(
    "sft", agents=AGENTS, model=model, examples={"episodes": str(examples), "batch_size": 4}
)
mlrl_learners.train(
    env_id=ENV_ID, env_options=OPTIONS, learner=teacher, iterations=2, run_dir="runs/sft"
)
teacher.save_weights(weights)

learner = mlrl_learners.make("ippo", agents=AGENTS, model=model, sampling={"max_new_tokens": 16})
learner.load_weights(weights)
result = mlrl_learners.train(
    env_id=ENV_ID,
    env_options=OPTIONS,
    learner=learner,
    iterations=2,
    tasks_per_iteration=2,
    run_dir="runs/sft_then_ppo",
)
print(f"return {result.metrics['train/return']:.3f}")
