"""The leaderboard: a Markdown page, an HTML page and transcripts built from result files.

Equal results give equal bytes, so that a stale page is found by building it again. Every text of a
model or a user is escaped. The HTML page loads nothing from the network and its content security
policy allows no script except its own.
"""

from mlrl_learners.bench.leaderboard.build import build, stale, write
from mlrl_learners.bench.leaderboard.submit import check_submission

__all__ = ["build", "check_submission", "stale", "write"]
