"""Figures of episodes as modules of Hugging Face's `evaluate`, found without any network.

    module = evaluate.load(metric_path("pass_at_k"))
    module.compute(predictions=Path("episodes.jsonl").read_text().splitlines(), k=[1, 5])

Predictions are the lines that `mlrl evaluate --episodes` and `mlrl collect` write, one an episode.
`python -m mlrl_learners.metric_modules` prints where the modules are. They need
`pip install 'mlrl[bench]'`; this package itself does not.
"""

from pathlib import Path

from mlrl_learners.errors import unknown_name

__all__ = ["METRICS", "metric_path"]

METRICS = ("pass_at_k", "team_return")


def metric_path(name: str) -> str:
    """Return what `evaluate.load` takes for one of `METRICS`.

    Raises:
        UnknownNameError: If there is no such module.
    """
    if name not in METRICS:
        raise unknown_name("metric", name, METRICS)
    return str(Path(__file__).parent / f"{name}.py")
