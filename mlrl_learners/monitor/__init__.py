"""A page on which people watch agents learn: `mlrl monitor runs/`.

Curves of one run or several laid over each other, live, and a reader of transcripts that searches
a hundred thousand episodes without loading them. Does not write anything, and asks no network for
anything. The server needs the extra `monitor`.
"""

from mlrl_learners.monitor.server import make_app, serve

__all__ = ["make_app", "serve"]
