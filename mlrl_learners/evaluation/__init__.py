"""Evaluation of actors, and collection of episodes as training data."""

from mlrl_learners.evaluation.collect import CollectionResult, collect
from mlrl_learners.evaluation.evaluate import EvaluationResult, evaluate

__all__ = ["CollectionResult", "EvaluationResult", "collect", "evaluate"]
