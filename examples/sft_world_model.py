"""A world model by SFT: predict what agents read next, from episodes of a random player.

python examples/sft_world_model.py [MODEL]
"""

import sys
from pathlib import Path

import mlrl_learners
from mlrl_learners.actors import RandomActor
from mlrl_learners.evaluation.collect import collect

ENV_ID, AGENTS = "mlrl/story-v1", ["setup", "story"]
OPTIONS = {"max_turns": 2}
episodes = Path("runs/random.jsonl")
episodes.parent.mkdir(exist_ok=True)
collect(env_id=ENV_ID, actor=RandomActor(), env_options=OPTIONS, out=episodes, tasks=4)
learner = mlrl_learners.make(
    "sft",
    agents=AGENTS,
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    team={"share_weights": True},
    examples={"episodes": str(episodes), "predict": "observations", "batch_size": 4},
)
result = mlrl_learners.train(
    env_id=ENV_ID, env_options=OPTIONS, learner=learner, iterations=2, run_dir="runs/world_model"
)
print({name: round(value, 3) for name, value in result.metrics.items() if "loss" in name})
