"""A suite of two short entries, and the command that runs it."""

from mlrl_learners.cli import main

SUITE = """
name: quick
version: 0
summary: a story
seeds: [0, 1]
budget: {turns: 1, tokens: 8}
entries:
  - {env: mlrl/story-v1, split: sample, tasks: 4}
  - {env: mlrl/math-v2, split: sample, tasks: 2}
"""


def bench(suite, actor, folder, *words):
    return main(
        ["bench", "run", "--suite", suite, "--actor", actor, "--run-dir", str(folder), *words]
    )
