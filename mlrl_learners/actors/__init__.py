"""Actors without training: endpoints, baselines, scripts, and wrappers of other actors."""

from mlrl_learners.actors.endpoint import EndpointActor
from mlrl_learners.actors.game_script import ScriptActor
from mlrl_learners.actors.match import MatchActor
from mlrl_learners.actors.random_text import RandomActor
from mlrl_learners.actors.reference import ReferenceActor
from mlrl_learners.actors.single import SingleActor
from mlrl_learners.actors.workflow import WorkflowActor

__all__ = [
    "EndpointActor",
    "MatchActor",
    "RandomActor",
    "ReferenceActor",
    "ScriptActor",
    "SingleActor",
    "WorkflowActor",
]
