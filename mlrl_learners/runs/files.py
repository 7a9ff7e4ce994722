"""File names of a run directory.

The folder of a benchmark run has the same `EPISODES_FILE` and `FAILURES_FILE`.
"""

__all__ = [
    "CONFIG_FILE",
    "CROSSPLAY_FILE",
    "ENVIRONMENT_FILE",
    "EPISODES_FILE",
    "EVALUATIONS_FILE",
    "FAILURES_FILE",
    "METRICS_FILE",
    "RESULT_FILE",
    "RUN_FILES",
]

CONFIG_FILE = "config.yaml"
"""Resolved configuration."""
ENVIRONMENT_FILE = "environment.json"
"""Versions, commit and hardware."""
METRICS_FILE = "metrics.jsonl"
"""One line per training iteration."""
EPISODES_FILE = "episodes.jsonl"
"""One line per rollout tree in a run directory, one line per episode in a benchmark folder."""
EVALUATIONS_FILE = "evaluations.jsonl"
"""One line per evaluation, episodes included."""
FAILURES_FILE = "failures.jsonl"
"""One line per episode that infrastructure broke."""

RESULT_FILE = "result.json"
"""Figures of a suite, in the folder of `mlrl bench run`."""
CROSSPLAY_FILE = "crossplay.json"
"""Figures of a cross-play, in the folder of `mlrl bench crossplay`."""

RUN_FILES = frozenset(
    {
        CONFIG_FILE,
        ENVIRONMENT_FILE,
        METRICS_FILE,
        EPISODES_FILE,
        EVALUATIONS_FILE,
        FAILURES_FILE,
    }
)
