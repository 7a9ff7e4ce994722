"""Live web page of training runs: `mlrl monitor runs/`.

It shows curves of one or several runs and a searchable list of episodes, of which it keeps figures
and positions but no texts in memory. It writes no files and loads nothing from the network. The
server needs the extra `monitor`.
"""

from mlrl_learners.monitor.server import make_app, serve

__all__ = ["make_app", "serve"]
