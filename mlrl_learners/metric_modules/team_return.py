"""What a team earned, and for what, over episodes, as a module of `evaluate`.

Self-contained but for `mlrl` itself: `evaluate` copies this file and imports the copy.
"""

from collections.abc import Sequence

import datasets
import evaluate

from mlrl_learners.figures.episode_figures import figures_of
from mlrl_learners.runs.records import parse_episode

DESCRIPTION = """\
Mean team return, the share of solved episodes, what each agent earned and what each part of the
reward contributed (tests, cooperation, ...), averaged over tasks, with 95 % bootstrap intervals.
"""
INPUTS = """\
Args:
    predictions: Lines of a file of episodes, as `mlrl evaluate --episodes` and `mlrl collect`
        write them; episodes of one task share its id.
    seed: Decides the draws of the intervals.

Returns:
    `mean_return`, `solved_rate` and `component/NAME`, each with `..._low` and `..._high`;
    `agent/NAME`; `tokens` and `prompt_tokens`, written and read in all.
"""


class TeamReturn(evaluate.Metric):  # type: ignore[misc]  # a library without types
    """`evaluate.load(metric_path("team_return"))`."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation="",
            inputs_description=INPUTS,
            features=datasets.Features({"predictions": datasets.Value("string")}),
        )

    def _compute(self, predictions: Sequence[str], seed: int = 0) -> dict[str, float]:
        episodes = [parse_episode(line) for line in predictions]
        figures = figures_of(episodes, ks=[1], seed=seed)
        means = {
            "mean_return": (figures.mean_return, figures.interval),
            "solved_rate": (figures.solved_rate, figures.solved_interval),
        }
        for name, value in figures.components.items():
            means[f"component/{name}"] = (value, figures.component_intervals[name])
        found = {name: value for name, (value, _) in means.items()}
        for name, (_, (low, high)) in means.items():
            found |= {f"{name}_low": low, f"{name}_high": high}
        found |= {f"agent/{agent}": value for agent, value in figures.agent_returns.items()}
        return found | {"tokens": figures.tokens, "prompt_tokens": figures.prompt_tokens}
