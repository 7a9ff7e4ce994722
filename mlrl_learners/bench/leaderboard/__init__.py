"""The leaderboard: result files become a Markdown page, a page for browsers and transcripts.

The same results always give the same bytes, so that a stale page is found by building it again.
Every text of a model or a user is escaped; the page asks no network for anything and allows no
script but its own.
"""

from mlrl_learners.bench.leaderboard.build import build, stale, write
from mlrl_learners.bench.leaderboard.submit import check_submission

__all__ = ["build", "check_submission", "stale", "write"]
