"""Learners for multi-agent text environments.

    learner = mlrl_learners.make("magrpo", model="smollm2-135m-instruct", agents=agents)
    mlrl_learners.train(env_id="mlrl/story-v1", learner=learner, iterations=20, run_dir="runs/a")
    result = mlrl_learners.evaluate(env_id="mlrl/story-v1", actor=learner, samples=4)

Importing this package loads no model library; `make` loads it for learners with models.
"""

from mlrl_learners.evaluation.evaluate import EvaluationResult, evaluate
from mlrl_learners.registry import make, register, registry
from mlrl_learners.testing import ScriptedActor, check_learner
from mlrl_learners.training.loop import TrainResult, train

__all__ = [
    "EvaluationResult",
    "ScriptedActor",
    "TrainResult",
    "check_learner",
    "evaluate",
    "make",
    "register",
    "registry",
    "train",
]
