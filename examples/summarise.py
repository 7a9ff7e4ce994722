"""Summarise own documents: a short and a long summary, paid by the facts in them.

python examples/summarise.py [MODEL]
"""

import re
import sys
from collections.abc import Mapping

import mlrl_envs
import mlrl_learners
from mlrl_envs.tasks import WritingTask

DOCUMENTS = [
    "The lighthouse of Skerry was built in 1811 by 60 masons. Its lamp is seen from 24 miles.",
    "The town library lends 12000 books a year. In 2019 a storm damaged 3 of its rooms.",
]
LIMITS = {"summary": 15, "elaboration": 40}  # words
FORM = "{{task}}\n\nSummarise it in at most {limit} words. Keep its names and numbers."


def facts(text: str) -> set[str]:
    """Return the numbers and names of a text: they cannot be guessed, and must not be invented."""
    return set(re.findall(r"\d+|(?<=[a-z] )[A-Z][a-z]+", text))


def reward(task: WritingTask, actions: Mapping[str, str]) -> dict[str, float]:
    """Pay each agent its share of the facts; a summary that is too long or invents earns 0."""
    wanted = facts(task.source)
    paid = {}
    for agent, text in actions.items():
        is_kept = len(text.split()) <= LIMITS[agent] and facts(text) <= wanted
        paid[agent] = len(facts(text)) / len(wanted) if is_kept else 0.0
    return paid


mlrl_envs.register(
    "mine/summaries-v0",
    lambda **options: mlrl_envs.make(
        "mlrl/tldr-v1",
        prompts=DOCUMENTS,
        reward=reward,
        reward_range=(0, 1),
        formatters={agent: FORM.format(limit=limit) for agent, limit in LIMITS.items()},
        **options,
    ),
)
learner = mlrl_learners.make(
    "magrpo",
    agents=list(LIMITS),
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    sampling={"max_new_tokens": 16},
    group={"size": 4, "joint_mode": "cross"},
)
result = mlrl_learners.train(
    env_id="mine/summaries-v0",
    learner=learner,
    iterations=2,
    tasks_per_iteration=2,
    run_dir="runs/summarise",
)
print(f"return {result.metrics['train/return']:.3f}")
