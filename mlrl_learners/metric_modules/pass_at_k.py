"""pass@k over episodes of multi-agent text environments, as a module of `evaluate`.

`evaluate` copies this file and imports the copy, so it imports only installed packages.
"""

from collections.abc import Sequence

import datasets
import evaluate

from mlrl_learners.figures.episode_figures import figures_of
from mlrl_learners.runs.records import parse_episode

DESCRIPTION = """\
Probability that at least one of k episodes of a task is solved, averaged over tasks. The unbiased
estimate is 1 - C(n - c, k) / C(n, k) for a task with n episodes of which c are solved.
"""
INPUTS = """\
Args:
    predictions: Lines of a file of episodes written by `mlrl evaluate --episodes` or
        `mlrl collect`; episodes of one task have the same task id.
    k: Values of k; a value that no task has enough episodes for is left out.

Returns:
    `pass@k` for each k, in [0, 1].
"""
CITATION = "M. Chen et al., Evaluating Large Language Models Trained on Code. arXiv:2107.03374"


class PassAtK(evaluate.Metric):  # type: ignore[misc]  # evaluate ships no types
    """`evaluate.load(metric_path("pass_at_k"))`."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation=CITATION,
            inputs_description=INPUTS,
            features=datasets.Features({"predictions": datasets.Value("string")}),
        )

    def _compute(self, predictions: Sequence[str], k: Sequence[int] = (1,)) -> dict[str, float]:
        episodes = [parse_episode(line) for line in predictions]
        found = figures_of(episodes, ks=sorted(set(k)), seed=0).pass_at_k
        return {f"pass@{number}": value for number, value in found.items()}
