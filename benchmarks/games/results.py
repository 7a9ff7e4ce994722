"""Results of the games: measures of stored weights, JSON files, tables and pictures."""

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
from benchmarks.games.measures import EVALUATION_SEED, GAMES, measure
from benchmarks.games.plans import Plan
from benchmarks.games.training import planned_runs, planned_updates, snapshots
from benchmarks.shared.curves import ROOT, Curve, grouped, save_figure, spread
from benchmarks.shared.kept_runs import check_same
from mlrl_envs.shell.fingerprint import fingerprint
from mlrl_learners.errors import RunDirError
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import JsonlFile, read_records

__all__ = [
    "KEY",
    "draw",
    "measure_method",
    "results_file",
    "stored_curves",
    "table",
    "write_results",
]

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

    Raises:
        RunDirError: If a part of the method is not trained, or was with another configuration.
    """
    for config, run_dir in planned_runs(plan, name, seed, runs):
        check_same(config, run_dir)
    planned = list(snapshots(plan, name, seed, runs))
    for each in planned:
        if not each.folder.exists():
            raise RunDirError(f"not finished: no weights after {each.update} updates")
    file = JsonlFile(runs / f"{name}-{seed}" / "measures.jsonl")
    known = {(record["update"], record.get("of")): record for record in file.records()}
    env = {**plan.env, **plan.methods[name].env}
    asked = _asked(plan, env)
    measures = []
    for each in planned:
        key = (each.update, _digest([asked, _weights(each.folder)]))
        if key not in known:
            figures = measure(plan.measure, each.folder, plan.env_id, env)
            rounded = {figure: round(value, 5) for figure, value in figures.items()}
            known[key] = {"update": each.update, "of": key[1], **rounded}
            file.append(known[key])
        measures.append({field: value for field, value in known[key].items() if field != "of"})
    minutes = round(_seconds(runs / f"{name}-{seed}") / 60, 1)
    return {KEY: name, "seed": seed, "minutes": minutes, "measures": measures}


def _asked(plan: Plan, env: Mapping[str, Any]) -> list[Any]:
    """Return what a measure depends on, besides the weights."""
    made = mlrl_envs.make(plan.env_id, **env)
    rules = fingerprint(made)
    made.close()
    return [plan.measure, GAMES, EVALUATION_SEED, plan.env_id, dict(env), rules]


def _weights(folder: Path) -> dict[str, str]:
    """Return the hash of each file of a model."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def _digest(value: Any) -> str:  # noqa: ANN401 - JSON values
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _seconds(folder: Path) -> float:
    """Return the seconds of all updates of a method."""
    return math.fsum(
        float(str(record["seconds"]))
        for path in folder.glob("stage-*/metrics.jsonl")
        for record in read_records(path)
    )


def results_file(game: str) -> Path:
    """Return the stored results of a game."""
    return ROOT / "benchmarks" / "games" / "results" / f"{game}.json"


def stored_curves(game: str, plan: Plan) -> list[Curve]:
    """Return the stored curves that a plan describes, in the order of its methods and seeds."""
    path = results_file(game)
    stored: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if stored.get("work") != _work(plan):
        return []
    order = list(plan.methods)
    curves = [curve for curve in stored["runs"] if curve[KEY] in order and _whole(plan, curve)]
    return sorted(curves, key=lambda curve: (order.index(curve[KEY]), curve["seed"]))


def write_results(game: str, plan: Plan, curves: Sequence[Curve]) -> None:
    """Write curves with what was done to a JSON file.

    Other methods and seeds in it stay if the plan describes them; those that do not are named.

    Args:
        game: Name of the game.
        plan: Its plan.
        curves: Curves of finished runs.
    """
    path = results_file(game)
    stored = json.loads(path.read_text("utf-8"))["runs"] if path.exists() else []
    kept = {(curve[KEY], curve["seed"]): curve for curve in stored_curves(game, plan)}
    kept |= {(curve[KEY], curve["seed"]): curve for curve in curves}
    for curve in stored:
        if (curve[KEY], curve["seed"]) not in kept:
            print(f"dropped: {curve[KEY]}, seed {curve['seed']}: of another plan", file=sys.stderr)
    order = list(plan.methods)
    runs = [kept[key] for key in sorted(kept, key=lambda key: (order.index(key[0]), key[1]))]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({"work": _work(plan), "runs": runs}, indent=1) + "\n", "utf-8")
    partial.rename(path)


def _work(plan: Plan) -> dict[str, Any]:
    """Return what was done, as JSON values."""
    work = {"env": plan.env_id, "options": dict(plan.env), "scripts": list(plan.scripts),
            "imitation_updates": plan.sft, "hidden_size": plan.size.hidden_size,
            "num_layers": plan.size.num_layers}  # fmt: skip
    return dict(json.loads(json.dumps(work)))


def _whole(plan: Plan, curve: Curve) -> bool:
    """Return whether a curve has a measure at each planned update, and at no other."""
    updates = [record["update"] for record in curve["measures"]]
    return updates == planned_updates(plan, curve[KEY])


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
    save_figure(figure, picture)


def _label(key: str) -> str:
    return "NashConv" if key == "nash_conv" else key.replace("_", " ")


def _draw_panel(axes: Any, plan: Plan, curves: Sequence[Curve], panel: str) -> None:  # noqa: ANN401 - matplotlib
    for color, (method, mine) in zip(COLORS, grouped(curves, KEY).items(), strict=False):
        found = [{each["update"]: each[plan.shown] for each in curve["measures"]} for curve in mine]
        updates = sorted(set.intersection(*map(set, found)))
        columns = [[values[update] for values in found] for update in updates]
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
