"""Results of the games: measures of stored weights, JSON files, tables and pictures."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.curves import ROOT, Curve, grouped, spread
from benchmarks.games.measures import measure
from benchmarks.games.plans import Plan
from benchmarks.games.training import snapshots
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import JsonlFile, read_records

__all__ = ["KEY", "draw", "measure_method", "results_file", "table", "write_results"]

KEY = "method"
LAST = ("legal",)  # column of tables: the probability of legal answers
HIDDEN = ("update", *LAST)
COLORS = ("#1b6ca8", "#c8553d", "#3c8d5a", "#7a5ea8", "#b8860b", "#555555", "#c2185b", "#00838f")


def measure_method(plan: Plan, name: str, seed: int, runs: Path) -> Curve:
    """Measure the stored weights of a method that have not been measured, and return its curve.

    Args:
        plan: The plan of the game.
        name: Name of the method.
        seed: Seed of the run.
        runs: Folder of all runs of the game.
    """
    file = JsonlFile(runs / f"measures-{name}-{seed}.jsonl")
    known = {int(str(record["update"])): record for record in file.records()}
    env = {**plan.env, **plan.methods[name].env}
    for each in snapshots(plan, name, seed, runs):
        if each.update not in known:
            figures = measure(plan.measure, each.folder, plan.env_id, env)
            rounded = {key: round(value, 5) for key, value in figures.items()}
            known[each.update] = {"update": each.update, **rounded}
            file.append(known[each.update])
    measures = [known[update] for update in sorted(known)]
    seconds = math.fsum(
        float(str(record["seconds"]))
        for path in (runs / f"{name}-{seed}").glob("stage-*/metrics.jsonl")
        for record in read_records(path)
    )
    return {KEY: name, "seed": seed, "minutes": round(seconds / 60, 1), "measures": measures}


def results_file(game: str) -> Path:
    """Return the stored results of a game."""
    return ROOT / "benchmarks" / "games" / "results" / f"{game}.json"


def write_results(game: str, plan: Plan, curves: Sequence[Curve]) -> None:
    """Write curves with what was done to a JSON file; other methods and seeds in it stay."""
    path = results_file(game)
    old: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    kept = {(curve[KEY], curve["seed"]): curve for curve in old.get("runs", [])}
    kept |= {(curve[KEY], curve["seed"]): curve for curve in curves}
    order = list(plan.methods)
    runs = [kept[key] for key in sorted(kept, key=lambda key: (order.index(key[0]), key[1]))]
    work = {"env": plan.env_id, "options": dict(plan.env), "scripts": list(plan.scripts),
            "imitation_updates": plan.sft, "hidden_size": plan.size.hidden_size,
            "num_layers": plan.size.num_layers}  # fmt: skip
    whole = {"work": work, "runs": runs}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(whole, indent=1) + "\n")
    partial.rename(path)


def table(plan: Plan, curves: Sequence[Curve]) -> str:
    """Return a Markdown table with one row per method: mean over seeds, minimum and maximum."""
    keys = [plan.shown, *(key for key in curves[0]["measures"][-1] if key not in HIDDEN)]
    keys = list(dict.fromkeys(keys)) + [key for key in LAST if key in curves[0]["measures"][-1]]
    names = [_label(key) for key in keys]
    lines = [f"| method | seeds | {names[0]}, imitation | {' | '.join(names)} |"]
    lines.append(f"|---|---|---|{'---|' * len(keys)}")
    for method, mine in grouped(curves, KEY).items():
        cells = [str(len(mine)), spread([curve["measures"][0][plan.shown] for curve in mine])]
        cells += [spread([curve["measures"][-1][key] for curve in mine]) for key in keys]
        lines.append(f"| {plan.methods[method].label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(plan: Plan, curves: Sequence[Curve], picture: Path) -> None:
    """Draw the measure over updates: mean over seeds, with a band from minimum to maximum."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(plan.methods[curve[KEY]].panel for curve in curves))
    figure = Figure(figsize=(max(7.2, 2.8 * len(names)), 3.8), layout="constrained")
    for axes, panel in zip(
        figure.subplots(1, len(names), sharey=True, squeeze=False)[0], names, strict=True
    ):
        mine = [curve for curve in curves if plan.methods[curve[KEY]].panel == panel]
        _draw_panel(axes, plan, mine, panel)
        axes.set_title(panel, fontsize=9)
    figure.supxlabel("updates after imitation", fontsize=10)
    figure.supylabel(_label(plan.shown), fontsize=10)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, metadata={"Date": None})


def _label(key: str) -> str:
    return "NashConv" if key == "nash_conv" else key.replace("_", " ")


def _draw_panel(axes: Any, plan: Plan, curves: Sequence[Curve], panel: str) -> None:  # noqa: ANN401 - matplotlib
    for color, (method, mine) in zip(COLORS, grouped(curves, KEY).items(), strict=False):
        points = min(len(curve["measures"]) for curve in mine)
        updates = [record["update"] for record in mine[0]["measures"][:points]]
        columns = [
            [curve["measures"][point][plan.shown] for curve in mine] for point in range(points)
        ]
        least, most = [min(c) for c in columns], [max(c) for c in columns]
        axes.fill_between(updates, least, most, color=color, alpha=0.15, linewidth=0)
        label = method.removeprefix(f"{panel}-")
        axes.plot(updates, [mean(c) for c in columns], color=color, label=label)
    for name, value in plan.references.items():
        axes.axhline(value, color="0.5", linewidth=0.8, linestyle=":")
        axes.annotate(name, (1, value), xycoords=("axes fraction", "data"), fontsize=7,
                      color="0.35", ha="right", va="bottom")  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7)
