"""Recipes on language: stories and arithmetic, at equal numbers of sampled answers.

    python -m benchmarks.recipes.curves [--tasks story small-math] [--recipes drmas c3]
        [--seeds 0 1 2] [--runs runs/recipe_curves] [--gather-only] [--publish]

Each recipe trains two agents with one set of weights, with the options that make the recipe; task,
model, lengths, learning rate and number of answers are the same for all. Stories (`story`) and
arithmetic (`math`) are those of SmolLM2; `small-math` is the same arithmetic with a small Llama.
Arithmetic starts from weights that `sft` trained on reference solutions, one set for all recipes
and seeds. Finished runs are kept and interrupted runs are resumed; `--publish` adds their figures
to those of `benchmarks/recipes/curves.json`, so that a part of the runs can be repeated. The gain
is the difference from `magrpo` at the same seed. With SmolLM2 a run takes four minutes of a core
with bfloat16 products, and all of them two and a half hours. Without them (AVX2) it is about ten
times as long: an update of `sft` takes 20 seconds, and there are 120 before the first run of
arithmetic. A run of `small-math` takes less than a minute on any core.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mlrl_envs
from benchmarks.games.model import save_model
from benchmarks.games.play import texts_of
from benchmarks.perf.table import between
from benchmarks.recipes.tasks import (
    DEFAULT,
    SHARED,
    TASKS,
    Imitation,
    SmallModel,
    Task,
    run_config,
)
from benchmarks.shared import curves
from benchmarks.shared.intervals import half_width, interval
from benchmarks.shared.kept_runs import finish, keep_same, shared_weights
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig
from mlrl_learners.errors import RunDirError
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import read_records
from mlrl_learners.runs.files import METRICS_FILE

__all__ = ["RECIPES", "main", "rows", "table"]

RESULTS = Path(__file__).with_name("curves.json")
PAGE = curves.ROOT / "docs" / "learners.md"
BEGIN, END = "<!-- recipe curves: begin -->", "<!-- recipe curves: end -->"
RECIPES = ("humaneval-paper", "drmas", "c3", "spiral", "maporl")


def rows(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each task and recipe: held-out returns, and the gain over the default.

    The gain is the mean over seeds of paired differences of held-out returns after training, with
    the 95 % interval of Student's t; there is none for a single seed.

    Args:
        records: Records of finished runs, with keys `task`, `recipe`, `seed`, `before`, `after` and
            `returns`.
    """
    groups = dict.fromkeys((each["task"], each["recipe"]) for each in records)
    return [_row(records, task, recipe) for task, recipe in groups]


def _row(records: Sequence[Mapping[str, Any]], task: str, recipe: str) -> dict[str, Any]:
    mine, default = (
        {each["seed"]: each for each in records if (each["task"], each["recipe"]) == (task, name)}
        for name in (recipe, DEFAULT)
    )
    gains = [mine[seed]["after"] - default[seed]["after"] for seed in mine if seed in default]
    learnt = [each["after"] - each["before"] for each in mine.values()]
    return {
        "task": task,
        "recipe": recipe,
        "seeds": sorted(mine),
        "before": round(mean([each["before"] for each in mine.values()]), 4),
        "after": round(mean([each["after"] for each in mine.values()]), 4),
        "learnt": round(mean(learnt), 4),
        "learnt_half_width": half_width(learnt),
        "gain": round(mean(gains), 4) if gains else None,
        "gain_half_width": half_width(gains),
    }


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    lines = [
        "| task | recipe | seeds | held-out before → after | change | gain over `magrpo` |",
        "|---|---|---|---|---|---|",
    ]
    for row in found:
        is_default = row["recipe"] == DEFAULT
        gain = "" if is_default else interval(row["gain"], row["gain_half_width"])
        lines.append(
            f"| {row['task']} | `{row['recipe']}` | {len(row['seeds'])} "
            f"| {row['before']:.2f} → {row['after']:.2f} "
            f"| {interval(row['learnt'], row['learnt_half_width'])} | {gain} |"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing, print the table, and publish it if asked."""
    given = _parse(argv)
    names = (DEFAULT, *(name for name in given.recipes if name != DEFAULT))
    asked = [(task, name, seed) for task in given.tasks for seed in given.seeds for name in names]
    if not given.gather_only:
        for task, recipe, seed in asked:
            if not _train(task, recipe, seed, given.runs):
                print("interrupted: the same command continues", file=sys.stderr)
                return 130
    records = []
    for task, recipe, seed in asked:
        try:
            records.append(_record(task, recipe, seed, given.runs))
        except RunDirError as error:
            print(f"left out: {task}, {recipe}, seed {seed}: {error}", file=sys.stderr)
    print(table(rows(records)))
    if given.publish and records:
        _publish(records)
    return 0 if len(records) == len(asked) else 1


def _publish(records: Sequence[Mapping[str, Any]]) -> None:
    """Add records to the results, and write the table of all of them into the page.

    Results of tasks and recipes that are compared no longer are dropped.
    """
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))["runs"] if RESULTS.exists() else []
    order = (DEFAULT, *RECIPES)
    runs = {
        (each["task"], each["recipe"], each["seed"]): each
        for each in (*stored, *records)
        if each["task"] in TASKS and each["recipe"] in order
    }
    ordered = sorted(runs, key=lambda key: (list(TASKS).index(key[0]), order.index(key[1]), key[2]))
    whole = [runs[key] for key in ordered]
    found = rows(whole)
    used = {run["task"]: TASKS[run["task"]].model for run in whole}
    models = {task: each if isinstance(each, str) else each.name for task, each in used.items()}
    text = json.dumps({"models": models, "rows": found, "runs": whole}, indent=1)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(between(page, BEGIN, END, table(found)), encoding="utf-8")


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.recipes.curves", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--recipes", nargs="+", choices=(DEFAULT, *RECIPES), default=RECIPES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs/recipe_curves"))
    parser.add_argument("--gather-only", action="store_true", help="do not train")
    parser.add_argument("--publish", action="store_true", help="write the results and the table")
    return parser.parse_args(argv)


def _train(task: str, recipe: str, seed: int, runs: Path) -> bool:
    """Train a run, or what is left of it; return whether it is finished."""
    start = _imitated(task, runs)
    return start is not None and finish(
        run_config(TASKS[task], recipe, seed, start), _folder(runs, task, recipe, seed)
    )


def _imitated(task: str, runs: Path) -> str | None:
    """Return the model from which a task starts; None if its training was interrupted."""
    plan = TASKS[task]
    if plan.imitation is None:
        return str(plan.model)
    file, run_dir = runs / f"{task}-references.jsonl", runs / f"{task}-sft"
    imitation = plan.imitation
    shown = {"variants": imitation.variants, "demonstrations": imitation.demonstrations}
    model_made = plan.model if isinstance(plan.model, str) else asdict(plan.model)
    runs.mkdir(parents=True, exist_ok=True)
    keep_same(
        runs / f"{task}-made.json",
        {"env": plan.env_id, "options": plan.env, **shown, "model": model_made},
    )
    if not file.exists():
        _write_references(plan, imitation, file)
    model = plan.model if isinstance(plan.model, str) else _small(plan.model, file, runs / task)
    examples = {"examples": {"episodes": str(file), "filter_reward": None}}
    options = merge_options(SHARED, plan.learner, imitation.options, examples)
    train = TrainConfig(imitation.iterations, checkpoint_every=imitation.iterations)
    env = EnvConfig(plan.env_id, {"split": "train", **plan.env})
    config = RunConfig(env, LearnerConfig("sft", model, options), train=train)
    if not finish(config, run_dir):
        return None
    return str(shared_weights(run_dir, imitation.iterations))


def _write_references(plan: Task, imitation: Imitation, file: Path) -> None:
    """Write the reference solutions of the first training tasks of all variants."""
    partial = file.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as lines:
        for variant in imitation.variants:
            env: Any = mlrl_envs.make(plan.env_id, **{**plan.env, **variant, "split": "train"})
            family = env.family
            for task in family.tasks[: imitation.demonstrations]:
                answers = dict(family.reference(task))
                turn = {
                    "observations": {agent: family.prompt(task, agent) for agent in answers},
                    "actions": answers,
                    "finish_reasons": dict.fromkeys(answers, "stop"),
                }
                lines.write(json.dumps({"return": 1.0, "turns": [turn]}) + "\n")
            env.close()
    partial.rename(file)


def _small(model: SmallModel, file: Path, folder: Path) -> str:
    """Return the folder of a small model with random weights, which is made if it is missing."""
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        save_model(partial, texts_of(file), model.size, seed=model.seed, unread=model.unread,
                   digits=True)  # fmt: skip
        partial.rename(folder)
    return str(folder)


def _record(task: str, recipe: str, seed: int, runs: Path) -> dict[str, Any]:
    """Return the figures of a finished run.

    Raises:
        RunDirError: As `curves.held_out_returns` does.
    """
    run_dir, plan = _folder(runs, task, recipe, seed), TASKS[task]
    start = str(plan.model) if plan.imitation is None else curves.stored_model(run_dir) or ""
    held_out = curves.held_out_returns(run_config(plan, recipe, seed, start), run_dir)
    metrics = read_records(run_dir / METRICS_FILE)
    return {
        "task": task,
        "recipe": recipe,
        "seed": seed,
        "before": round(held_out[0], 4),
        "after": round(held_out[plan.iterations], 4),
        "returns": [round(float(str(each["train/return"])), 4) for each in metrics],
    }


def _folder(runs: Path, task: str, recipe: str, seed: int) -> Path:
    return runs / f"{task}-{recipe}-{seed}"


if __name__ == "__main__":
    sys.exit(main())
