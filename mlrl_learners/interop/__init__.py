"""Our environments as other people's trainers want them: data sets, reward functions, formatters.

Nothing here imports those trainers, and none of them is a dependency. What an environment refuses
or infrastructure breaks is raised; it is never handed on as a reward of 0.
"""

from mlrl_learners.interop.comlrl import TeamView
from mlrl_learners.interop.trl import SingleAgentView

__all__ = ["SingleAgentView", "TeamView"]
