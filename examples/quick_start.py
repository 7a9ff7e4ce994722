"""Train two writers, evaluate them, and look at one episode.

python examples/quick_start.py [MODEL]
"""

import sys

import mlrl_envs
import mlrl_learners

model = sys.argv[1] if len(sys.argv) > 1 else "tiny-random"
agents = mlrl_envs.make("mlrl/story-v1").possible_agents
learner = mlrl_learners.make(
    "magrpo", agents=agents, model=model, group={"size": 4}, sampling={"max_new_tokens": 16}
)
mlrl_learners.train(
    env_id="mlrl/story-v1", learner=learner, iterations=2, run_dir="runs/quick_start"
)
result = mlrl_learners.evaluate(env_id="mlrl/story-v1", actor=learner, tasks=2)
print(f"mean return {result.mean_return:.3f}")
print(result.episodes[0].turns[0].completions["story"].text)
