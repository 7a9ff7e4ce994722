"""Metrics of episodes as modules of Hugging Face's `evaluate`, loaded without network access.

    module = evaluate.load(metric_path("pass_at_k"))
    module.compute(predictions=Path("episodes.jsonl").read_text().splitlines(), k=[1, 5])

Predictions are lines of `mlrl evaluate --episodes` or `mlrl collect`, one per episode.
`python -m mlrl_learners.metric_modules` prints the paths of the modules, which need
`pip install 'mlrl[metrics]'`.
"""

from pathlib import Path

from mlrl_learners.errors import unknown_name

__all__ = ["METRICS", "metric_path"]

METRICS = ("pass_at_k", "team_return")


def metric_path(name: str) -> str:
    """Return the path of a metric, an argument of `evaluate.load`.

    Args:
        name: One of `METRICS`.

    Raises:
        UnknownNameError: If there is no such metric.
    """
    if name not in METRICS:
        raise unknown_name("metric", name, METRICS)
    return str(Path(__file__).parent / f"{name}.py")
