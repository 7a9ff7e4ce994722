"""Data types of learners and the training loop: completions, rollout trees and protocols.

- `completions`: answers with tokens and log-probabilities
- `conversations`: observations with the earlier turns of their agent
- `rollouts`: rollout trees, episodes and the options of their collection
- `actors`: protocols of actors and learners
- `contract`: rules for what actors and learners return

Shape letters: `B` rows, `T` tokens, `G` samples per group, `N` agents, `V` vocabulary.
"""

from mlrl_learners.types.actors import Actor, Learner, Spectator
from mlrl_learners.types.completions import Completion, FinishReason, Nucleus, Usage
from mlrl_learners.types.conversations import Conversation, continued, conversations
from mlrl_learners.types.rollouts import (
    AgentID,
    Branching,
    Episode,
    EpisodeTurn,
    FailedEpisode,
    JointMode,
    JointStep,
    Node,
    Rollout,
    RolloutConfig,
)

__all__ = [
    "Actor",
    "AgentID",
    "Branching",
    "Completion",
    "Conversation",
    "Episode",
    "EpisodeTurn",
    "FailedEpisode",
    "FinishReason",
    "JointMode",
    "JointStep",
    "Learner",
    "Node",
    "Nucleus",
    "Rollout",
    "RolloutConfig",
    "Spectator",
    "Usage",
    "continued",
    "conversations",
]
