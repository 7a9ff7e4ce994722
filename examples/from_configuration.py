"""A run from a configuration: written, trained, resumed and evaluated by the command line.

python examples/from_configuration.py [MODEL]
"""

import sys
from pathlib import Path

from mlrl_learners.cli import main

CONFIG = """
env: {id: mlrl/story-v1, options: {workflow: pipeline}}
learner:
  name: magrpo
  model: MODEL
  options: {group: {size: 2}, sampling: {max_new_tokens: 8}}
train: {iterations: 1, tasks_per_iteration: 1}
"""
model = sys.argv[1] if len(sys.argv) > 1 else "tiny-random"
path = Path("run.yaml")
path.write_text(CONFIG.replace("MODEL", model))
main(["train", str(path), "--run-dir", "runs/configured"])
main(["train", "--run-dir", "runs/configured", "--resume", "--train.iterations", "2"])
main(["evaluate", "runs/configured", "--tasks", "2"])
