"""Adapters that let other trainers use mlrl environments: data sets, rewards, formatters.

No trainer is imported, and none is a dependency. Errors of an environment or of infrastructure are
raised and never become a reward of 0.
"""

from mlrl_learners.interop.comlrl import TeamView
from mlrl_learners.interop.trl import SingleAgentView

__all__ = ["SingleAgentView", "TeamView"]
