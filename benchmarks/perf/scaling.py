"""Benchmark of the cost of a MAGRPO step over tasks, agents, turns and lengths.

One size grows at a time. The exponent is the slope of a line through the logarithms of work and
seconds: 1 is linear, less is better. For turns the work is the number of nodes of the tree, because
every joint action is continued. The picture is `docs/images/scaling.svg`.

    python -m benchmarks.perf.scaling [--picture docs/images/scaling.svg]
"""

import argparse
import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.perf.arguments import parse_arguments
from benchmarks.perf.common import (
    PICTURES,
    Measurement,
    alternate,
    hardware,
    print_figure,
    spread,
    versions,
)
from benchmarks.perf.magrpo_step import AS_THE_PEER
from benchmarks.perf.step_ours import prepare
from benchmarks.perf.versus import model_folder, story_prompts
from benchmarks.perf.work import Work
from benchmarks.shared.curves import save_figure
from mlrl_learners.config.option_places import merge_options

__all__ = ["draw", "exponent", "main"]

SIZES = {"tasks": (1, 2, 4, 8), "agents": (1, 2, 4), "turns": (1, 2), "length": (16, 32, 64, 128)}
SMOKE_SIZES = {"tasks": (1, 2), "agents": (1, 2), "turns": (1, 2), "length": (4, 8)}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, draw, and print the result as one JSON line."""
    arguments = _parse(argv)
    sizes = SMOKE_SIZES if arguments.smoke else SIZES
    before, curves = hardware(), {}
    with model_folder(smoke=arguments.smoke) as folder:
        for name, values in sizes.items():
            sides = {
                str(value): _step(_work(folder, name, value, arguments.max_new_tokens))
                for value in values
            }
            measured = alternate(sides, rounds=arguments.rounds, warmup=1)
            curves[name] = {
                value: spread([m["seconds"] for m in measured[str(value)]]) for value in values
            }
    exponents = {name: exponent(_amounts(name, curve)) for name, curve in curves.items()}
    draw({name: _amounts(name, curve) for name, curve in curves.items()}, arguments.picture)
    print_figure(
        {
            "figure": "scaling",
            "title": f"Cost of a MAGRPO step, SmolLM2-135M, G 4, {arguments.max_new_tokens} new "
            "tokens unless said",
            "work": {"sizes": sizes, "rounds": arguments.rounds},
            "rows": [
                {
                    "what": f"exponent over {name}, {min(curve)} to {max(curve)}",
                    "unit": "",
                    "ours": exponents[name],
                }
                for name, curve in curves.items()
            ],
            "measured": curves,
            "versions": versions(["mlrl", "torch", "transformers"]),
            "hardware": before,
        }
    )


def exponent(seconds: Mapping[float, float]) -> float:
    """Return the slope of log seconds over log work, by least squares."""
    line = statistics.linear_regression(
        [math.log(amount) for amount in seconds], [math.log(value) for value in seconds.values()]
    )
    return round(line.slope, 2)


def draw(curves: Mapping[str, Mapping[float, float]], picture: Path) -> None:
    """Draw seconds over work, with linear growth from the first point for comparison."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 2.8), layout="constrained")
    for axes, (name, curve) in zip(figure.subplots(1, len(curves)), curves.items(), strict=True):
        amounts, seconds = list(curve), list(curve.values())
        linear = [seconds[0] * amount / amounts[0] for amount in amounts]
        axes.loglog(amounts, linear, color="0.7", linestyle="--", label="linear")
        axes.loglog(amounts, seconds, color="#1b6ca8", marker="o", label="measured")
        axes.set_xticks(amounts, [f"{amount:g}" for amount in amounts])
        axes.set_yticks(seconds, [f"{value:.3g}" for value in seconds])
        axes.minorticks_off()
        axes.set_xlabel({"turns": "nodes of the tree", "length": "new tokens"}.get(name, name))
        axes.set_title(f"{name}: exponent {exponent(curve)}", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.supylabel("seconds a step", fontsize=10)
    save_figure(figure, picture)


def _amounts(
    name: str, curve: Mapping[int, Mapping[str, float]], group_size: int = 4
) -> dict[float, float]:
    """Return the median seconds for each amount of work."""
    nodes = functools.partial(_nodes, group_size=group_size)
    return {(nodes(n) if name == "turns" else n): value["median"] for n, value in curve.items()}


def _nodes(turns: int, *, group_size: int) -> int:
    return sum(group_size**turn for turn in range(turns))


def _work(folder: str, name: str, value: int, max_new_tokens: int) -> Work:
    agents = [f"writer-{number}" for number in range(value if name == "agents" else 1)]
    return Work(
        folder,
        story_prompts(value if name == "tasks" else 1, agents),
        max_new_tokens=value if name == "length" else max_new_tokens,
        turns=value if name == "turns" else 1,
    )


def _step(work: Work) -> Callable[[int], Measurement]:
    # Agents share weights, so that memory does not limit their number.
    options = merge_options(AS_THE_PEER, {"team": {"share_weights": True}})
    step, _ = prepare({**work.as_setup(), "learner": "magrpo", "options": options})
    return step


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    return parse_arguments(
        argv,
        "Cost of a step over tasks, agents, turns and lengths.",
        rounds={"type": int, "default": 3, "help": "measured rounds per size"},
        max_new_tokens=32,
        picture=PICTURES / "scaling.svg",
        smoke=False,
    )


if __name__ == "__main__":
    main()
