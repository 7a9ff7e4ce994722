"""An own reward, own data and own prompts for two writers.

python examples/custom_reward.py [MODEL]
"""

import sys
from collections.abc import Mapping

import mlrl_envs
import mlrl_learners
from mlrl_envs.tasks import StoryTask


def names_the_topic(task: StoryTask, actions: Mapping[str, str]) -> dict[str, float]:
    """Pay each agent the share of the prompt's long words that it uses."""
    wanted = {word for word in task.prompt.lower().strip(":").split() if len(word) > 4}
    return {
        agent: len(wanted & set(text.lower().split())) / max(1, len(wanted))
        for agent, text in actions.items()
    }


mlrl_envs.register(
    "mine/topics-v0",
    lambda **options: mlrl_envs.make(
        "mlrl/story-v1",
        prompts=["Describe a lighthouse keeper:", "Describe a frozen harbour:"],
        reward=names_the_topic,
        reward_range=(0, 1),
        reward_processors=[{"scale": 2}, {"clamp": [0, 1]}],
        formatters={"setup": "{task}\n\nOne sentence, please."},
        **options,
    ),
)
learner = mlrl_learners.make(
    "magrpo",
    agents=["setup", "story"],
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    sampling={"max_new_tokens": 16},
)
result = mlrl_learners.train(
    env_id="mine/topics-v0", learner=learner, iterations=2, run_dir="runs/custom_reward"
)
print(f"return {result.metrics['train/return']:.3f}")
