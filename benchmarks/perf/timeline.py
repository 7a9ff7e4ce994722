"""Timeline of a training step on a coding task: generation, scoring and update.

Generation and update are timed at the calls of policy and learner; scoring is the time that
programs spend in the sandbox. The picture is `docs/images/timeline.svg`; the rows hold the share of
each part and the idle share.

    python -m benchmarks.perf.timeline [--tasks 4] [--max-new-tokens 64]
"""

import argparse
import copy
import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import mlrl_envs
import mlrl_learners
from benchmarks.perf.arguments import parse_arguments
from benchmarks.perf.common import PICTURES, hardware, print_figure, versions
from benchmarks.perf.versus import model_folder
from benchmarks.shared.curves import save_figure
from mlrl_envs.sandbox import Outcome, Program, Sandbox
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.types import RolloutConfig

__all__ = ["Lanes", "draw", "main"]

Result = TypeVar("Result")
COLOURS = {"generation": "#1b6ca8", "scoring": "#d1793b", "update": "#4c9a5b"}


@dataclass
class Lanes:
    """Time spans of each kind of work, in seconds from the start."""

    start: float = field(default_factory=time.perf_counter)
    spans: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def timed(self, lane: str, work: Callable[..., Result]) -> Callable[..., Result]:
        """Return a function that records the time spans of its calls."""

        @functools.wraps(work)
        def noted(*args: Any, **kwargs: Any) -> Result:  # noqa: ANN401 - any function's
            begin = time.perf_counter()
            try:
                return work(*args, **kwargs)
            finally:
                end = time.perf_counter()
                self.spans.setdefault(lane, []).append((begin - self.start, end - self.start))

        return noted

    def seconds(self, lane: str) -> float:
        """Return the busy time of a lane."""
        return sum(end - begin for begin, end in self.spans.get(lane, ()))

    def covered(self) -> float:
        """Return the time in which any lane was busy."""
        total = last = 0.0
        for begin, end in sorted(span for spans in self.spans.values() for span in spans):
            total += max(0.0, end - max(begin, last))
            last = max(last, end)
        return total


class NotedSandbox:
    """Sandbox that records the time spans of its batches."""

    def __init__(self, sandbox: Sandbox, lanes: Lanes) -> None:
        self._run_many = lanes.timed("scoring", sandbox.run_many)

    def run_many(self, programs: Sequence[Program]) -> list[Outcome]:
        """Run programs in the sandbox."""
        return self._run_many(programs)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, draw, and print the result as one JSON line."""
    arguments = _parse(argv)
    before = hardware()
    with model_folder(smoke=arguments.smoke) as folder, Sandbox() as sandbox:
        _step(folder, sandbox, arguments)  # starts the workers
        lanes, total = _step(folder, sandbox, arguments)
    draw(lanes, total, arguments.picture)
    print_figure(
        {
            "figure": "timeline",
            "title": f"A MAGRPO step on mlrl/humaneval-v1, SmolLM2-135M, 2 agents, "
            f"{arguments.tasks} tasks, G 4, {arguments.max_new_tokens} new tokens",
            "work": {"tasks": arguments.tasks, "max_new_tokens": arguments.max_new_tokens},
            "rows": [
                *(
                    _row(f"{lane}, share of a step", lanes.seconds(lane) / total)
                    for lane in COLOURS
                ),
                _row("nothing of these, share of a step", 1.0 - lanes.covered() / total),
            ],
            "measured": {"seconds": total, "spans": lanes.spans},
            "versions": versions(["mlrl", "torch", "transformers"]),
            "hardware": before,
        }
    )


def _step(folder: str, sandbox: Sandbox, arguments: argparse.Namespace) -> tuple[Lanes, float]:
    lanes = Lanes()
    noted = NotedSandbox(sandbox, lanes)
    env = mlrl_envs.make("mlrl/humaneval-v1", split="sample", max_turns=1, sandbox=noted)
    envs = [copy.deepcopy(env) for _ in range(arguments.tasks)]
    learner: Any = mlrl_learners.make(
        "magrpo",
        agents=env.possible_agents,
        model=folder,
        sampling={"max_new_tokens": arguments.max_new_tokens},
        baseline={"skip_equal_groups": False},
    )
    learner.act = lanes.timed("generation", learner.act)
    lanes.start = time.perf_counter()
    batch = collect_rollouts(
        envs,
        learner,
        RolloutConfig(num_samples=4),
        task_options=[{"task_index": i % env.num_tasks} for i in range(arguments.tasks)],
        seeds=[0] * arguments.tasks,
    )
    lanes.timed("update", learner.update)(batch.rollouts)
    return lanes, time.perf_counter() - lanes.start


def draw(lanes: Lanes, total: float, picture: Path) -> None:
    """Draw a lane for each kind of work."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.2), layout="constrained")
    axes = figure.subplots()
    for place, (lane, colour) in enumerate(COLOURS.items()):
        spans = [(begin, end - begin) for begin, end in lanes.spans.get(lane, ())]
        axes.broken_barh(spans, (place - 0.35, 0.7), color=colour)
    names = [f"{lane}, {lanes.seconds(lane):.2g} s" for lane in COLOURS]
    axes.set_yticks(range(len(COLOURS)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, total)
    axes.set_xlabel("seconds")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    save_figure(figure, picture)


def _row(what: str, share: float) -> dict[str, object]:
    return {"what": what, "unit": "%", "ours": round(100 * share, 2)}


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    return parse_arguments(
        argv,
        "Timeline of a training step.",
        tasks=4,
        max_new_tokens=64,
        picture=PICTURES / "timeline.svg",
        smoke=False,
    )


if __name__ == "__main__":
    main()
