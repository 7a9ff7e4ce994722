"""Learning curves of several runs: reading run folders, JSON files and Markdown tables."""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
import mlrl_learners
from benchmarks.shared.kept_runs import check_same
from mlrl_learners.config.run import RunConfig
from mlrl_learners.config.yaml import parse_yaml
from mlrl_learners.errors import RunDirError
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import read_records
from mlrl_learners.runs.files import CONFIG_FILE, EVALUATIONS_FILE, METRICS_FILE
from mlrl_learners.runs.provenance import package_versions

__all__ = [
    "Curve",
    "Planned",
    "conflict",
    "draw_held_out",
    "gather",
    "gather_all",
    "grouped",
    "held_out_returns",
    "merged",
    "parse",
    "program",
    "report",
    "save_figure",
    "spread",
    "stored_model",
    "table",
]

ROOT = Path(__file__).resolve().parents[2]

Curve = dict[str, Any]
"""Curve of one run: its group, `seed`, training `returns` per iteration, and `held_out` returns by
iteration."""


Planned = tuple[str, int, Path, RunConfig]
"""A run of a plan: its group, seed, folder and configuration."""


def gather_all(planned: Iterable[Planned], key: str) -> list[Curve]:
    """Read the curves of finished runs, and print which ones are left out, and why."""
    found = []
    for group, seed, run_dir, config in planned:
        try:
            found.append(gather(run_dir, key, group, seed, config))
        except RunDirError as error:
            print(f"left out: {group}, seed {seed}: {error}")
    return found


def gather(run_dir: Path, key: str, group: str, seed: int, config: RunConfig) -> Curve:
    """Read the curve of one run: mean returns, of training rollouts and of held-out tasks.

    Raises:
        RunDirError: As `held_out_returns` does.
    """
    held_out = held_out_returns(config, run_dir)
    returns = [
        round(float(str(record["train/return"])), 4)
        for record in read_records(run_dir / METRICS_FILE)
    ]
    rounded = {at: round(value, 4) for at, value in held_out.items()}
    return {key: group, "seed": seed, "returns": returns, "held_out": rounded}


def held_out_returns(config: RunConfig, run_dir: Path) -> dict[int, float]:
    """Return the held-out return of a finished run at each evaluation, by iteration.

    Args:
        config: What was to be trained.
        run_dir: Folder of the run.

    Raises:
        RunDirError: If it is not finished, was trained with another configuration, or episodes of
            an evaluation failed.
    """
    last = config.train.iterations
    evaluations: dict[int, Any] = {}
    for each in read_records(run_dir / EVALUATIONS_FILE):
        evaluations[int(str(each["iteration"]))] = each
    iterations = sum(1 for _ in read_records(run_dir / METRICS_FILE))
    if not (run_dir / CONFIG_FILE).exists():
        raise RunDirError("not trained")
    check_same(config, run_dir)
    if not {0, last} <= set(evaluations) or iterations != last:
        raise RunDirError("not finished")
    for at, each in evaluations.items():
        if failures := len(each.get("failures", [])):
            raise RunDirError(f"{failures} held-out episodes failed after iteration {at}")
    return {at: float(each["mean_return"]) for at, each in evaluations.items()}


def stored_model(run_dir: Path) -> str | None:
    """Return the model from which a run started, a path that may be old; None if there is no run.

    Args:
        run_dir: Folder of the run.
    """
    file = run_dir / CONFIG_FILE
    if not file.exists():
        return None
    stored: Any = parse_yaml(file.read_text("utf-8"), str(file))
    return str(stored["learner"]["model"])


def grouped(curves: Sequence[Curve], key: str) -> dict[str, list[Curve]]:
    """Return the curves of each group, in order of first appearance."""
    names = dict.fromkeys(str(curve[key]) for curve in curves)
    return {name: [curve for curve in curves if curve[key] == name] for name in names}


def table(curves: Sequence[Curve], key: str, labels: Mapping[str, str], iterations: int) -> str:
    """Return a Markdown table with one row per group: mean over seeds, minimum and maximum."""
    lines = [
        f"| {key} | first 3 iterations | last 3 | held-out, untrained | trained | gain, by seed |",
        "|---|---|---|---|---|---|",
    ]
    for group, mine in grouped(curves, key).items():
        before = [curve["held_out"][0] for curve in mine]
        after = [curve["held_out"][iterations] for curve in mine]
        cells = [
            spread([mean(curve["returns"][:3]) for curve in mine]),
            spread([mean(curve["returns"][-3:]) for curve in mine]),
            spread(before),
            spread(after),
            ", ".join(f"{b - a:+.3f}" for a, b in zip(before, after, strict=True)),
        ]
        lines.append(f"| {labels.get(group, group)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def report(
    curves: Sequence[Curve],
    arguments: argparse.Namespace,
    work: Mapping[str, Any],
    *,
    key: str,
    groups: Iterable[str],
    draw: Callable[[Sequence[Curve], Path], None],
) -> list[Curve]:
    """Add curves of finished runs to those of `arguments.out`, draw them, and return them all.

    Args:
        curves: The curves; those of other seeds and groups in the file stay.
        arguments: The arguments of the script, see `parse`.
        work: What was trained, and how; the file keeps none of another.
        key: The key of a curve that has its group.
        groups: All groups, in their order.
        draw: Draws curves to a file.

    Returns:
        All curves; none, and nothing is written, without `curves` or if the file would lose some.
    """
    stored = _read(arguments.out)
    if found := conflict(stored, work, curves, key):
        print(f"{str(arguments.out)!r} stays: {found}", file=sys.stderr)
        return []
    order = list(groups)
    whole = merged(stored, curves, key)
    whole.sort(key=lambda curve: (curve["seed"], order.index(curve[key])))
    text = json.dumps({"work": work, "runs": whole}, indent=1)
    arguments.out.write_text(text + "\n", encoding="utf-8")
    draw(whole, arguments.picture)
    return whole


def conflict(
    stored: Mapping[str, Any], work: Mapping[str, Any], found: Sequence[Mapping[str, Any]], key: str
) -> str | None:
    """Say why runs cannot be added to stored results; None if they can.

    Args:
        stored: The results, with `work` and `runs`; may be empty.
        work: What the runs trained, and how.
        found: The runs.
        key: The key of a run that has its group.
    """
    if not found:
        return "there is no finished run"
    if not stored or stored["work"] == json.loads(json.dumps(work)):
        return None
    lost = {(run[key], run["seed"]) for run in stored["runs"]}
    lost -= {(run[key], run["seed"]) for run in found}
    if not lost:
        return None
    names = ", ".join(f"{group} seed {seed}" for group, seed in sorted(lost))
    return f"its results are of another plan, and these runs would be lost: {names}"


def merged(
    stored: Mapping[str, Any], found: Sequence[Mapping[str, Any]], key: str
) -> list[dict[str, Any]]:
    """Return stored runs and found ones, which replace those of the same group and seed."""
    runs = (*stored.get("runs", []), *found)
    return [dict(run) for run in {(run[key], run["seed"]): run for run in runs}.values()]


def _read(file: Path) -> dict[str, Any]:
    """Return stored results, with iterations as numbers; an empty mapping if there are none."""
    stored: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for run in stored.get("runs", []):
        run["held_out"] = {int(at): value for at, value in run["held_out"].items()}
    return stored


def parse(
    argv: Sequence[str] | None,
    description: str,
    name: str,
    runs: str,
    *,
    groups: Iterable[str] = (),
) -> argparse.Namespace:
    """Parse the arguments of a script.

    Args:
        argv: The arguments; those of the process by default.
        description: What the script does.
        name: Of what is learnt, in the names of its output files.
        runs: Default folder of its runs.
        groups: Groups of runs to choose from with `--envs`; without any there is no such option.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=Path, default=Path(runs))
    if names := list(groups):
        parser.add_argument("--envs", dest="groups", nargs="+", choices=names, default=names)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--gather-only", action="store_true", help="do not train, use existing runs"
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "benchmarks" / "learning" / f"{name}.json"
    )
    picture = ROOT / "docs" / "images" / f"curves_{name}.svg"
    parser.add_argument("--picture", type=Path, default=picture)
    return parser.parse_args(argv)


def draw_held_out(
    axes: Any,  # noqa: ANN401 - of matplotlib
    curves: Sequence[Curve],
    label: str,
    *,
    scale: float = 1.0,
) -> None:
    """Draw the held-out returns of each curve as dots, at iterations times `scale`."""
    style: dict[str, Any] = {"color": "0.35", "markersize": 4}
    for curve in curves:
        places = [scale * at for at in curve["held_out"]]
        axes.plot(places, list(curve["held_out"].values()), "o:", **style)
    axes.plot([], [], "o:", label=label, **style)


def save_figure(figure: Any, picture: Path) -> None:  # noqa: ANN401 - of matplotlib
    """Save a figure without a date and random ids, so that equal figures are equal files."""
    import matplotlib as mpl

    picture.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "mlrl"}):
        figure.savefig(picture, metadata={"Date": None} if picture.suffix == ".svg" else None)


def program() -> dict[str, Any]:
    """Return what decides a result besides its options: versions of packages, and a hash of code.

    The hash covers all modules of `mlrl_envs` and `mlrl_learners`.
    """
    code = hashlib.sha256()
    for package in (mlrl_envs, mlrl_learners):
        root = Path(str(package.__file__)).parent
        for file in sorted(root.rglob("*.py")):
            code.update(f"{file.relative_to(root)}\n".encode() + file.read_bytes())
    return {"packages": package_versions(), "code": code.hexdigest()}


def spread(values: Sequence[float]) -> str:
    """Return the mean with minimum and maximum, as text."""
    return f"{mean(values):.3f} [{min(values):.3f}, {max(values):.3f}]"
