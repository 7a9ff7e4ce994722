"""Adapters of environments for other trainers: data sets, reward functions, formatters.

No trainer is imported, and none is a dependency. Errors of an environment or of infrastructure are
raised and never become a reward of 0.
"""

from mlrl_learners.interop.comlrl import TeamView
from mlrl_learners.interop.trl import SingleAgentView

__all__ = ["SingleAgentView", "TeamView"]
