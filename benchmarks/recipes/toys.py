"""Published recipes on toys: gain over the default method, and CPU seconds per update.

Each recipe is a preset; its learner and options are taken from the file, with the tiny model of the
toys, answers of one token, and one learning rate for all. The default is `magrpo` with its default
options, or `grpo` for one agent, at the same size. Runs have equal numbers of updates and of
rollouts; a recipe with fewer answers per prompt therefore has fewer samples. A run takes seconds,
on one thread; finished runs are kept, so that the command continues where it was stopped. They are
trained again if their options, the packages or the code of `mlrl` changed.

    nice -n 10 python -m benchmarks.recipes.toys --seeds 3 --publish
    python -m benchmarks.recipes.toys --recipes drmas dapo --toys doors --updates 10 --json

`--publish` writes the rows to `benchmarks/recipes/toys.json`, and their table to
`docs/learners.md`; it takes no fewer recipes, toys and seeds than are stored. `group.resample` is
part of the training loop of runs and has no effect here, and `penalty.overlong` is left out,
because all answers are equally long.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import mlrl_learners
from benchmarks.perf.table import between
from benchmarks.shared.curves import ROOT, program
from benchmarks.shared.intervals import half_width
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import load_config
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import JsonlFile
from mlrl_learners.registry import registry
from mlrl_learners.testing.gradients import play_toy
from mlrl_learners.testing.toy_model import toy_model
from mlrl_learners.testing.toy_training import mean_return
from mlrl_learners.testing.toys import TOYS

__all__ = [
    "PAGE",
    "RECIPES",
    "RESULTS",
    "main",
    "recipe_options",
    "rows",
    "run",
    "table",
    "toy_options",
]

RESULTS = Path(__file__).with_name("toys.json")
PAGE = ROOT / "docs" / "learners.md"
BEGIN, END = "<!-- recipes: begin -->", "<!-- recipes: end -->"
RECIPES = (
    *("humaneval-paper", "iac", "maac", "drmas", "at-grpo", "spiral", "c3", "maporl"),
    *("mappo-popart", "dapo", "rlhf-ppo", "simpo"),
)
SMALL: Mapping[str, Any] = {
    "sampling": {"max_new_tokens": 1, "temperature": 1.0, "top_p": 1.0},
    "optimizer": {"lr": 1e-2},
    "compute": {"device": "cpu"},
}
ROLLOUTS = 8
MOST_ANSWERS = 4
KEPT = ("group", "credit", "baseline", "critic", "advantage", "importance", "loss", "penalty")
"""Groups of options that make a recipe; models, lengths and learning rates are those of the toy."""


def default_of(recipe: str) -> str:
    """Return the name of the default method that a recipe is compared with."""
    return "grpo" if _num_agents(recipe) == 1 else "magrpo"


def recipe_options(recipe: str) -> dict[str, Any]:
    """Return the options that make a recipe; of a default method, none.

    Models, lengths and learning rates are left out. So are charges for long answers, which would
    make each turn of a toy cost the same, because every answer has the longest allowed length.

    Args:
        recipe: Name of a preset, or of a default method.
    """
    if recipe in ("magrpo", "grpo"):
        return {}
    own = load_config(recipe).learner.options
    options = {name: dict(own[name]) for name in KEPT if name in own}
    options["team"] = {
        name: value for name, value in own.get("team", {}).items() if name == "share_weights"
    }
    options["optimizer"] = {
        name: value
        for name, value in own.get("optimizer", {}).items()
        if name in ("epochs", "num_minibatches")
    }
    for name in ("overlong", "overlong_penalty", "overlong_buffer"):
        options.get("penalty", {}).pop(name, None)
    return options


def toy_options(recipe: str) -> dict[str, Any]:
    """Return the options of a recipe at the size of the toy; of a default method, none of its own.

    Args:
        recipe: Name of a preset, or of a default method.
    """
    options = recipe_options(recipe)
    if "critic" in options:
        options["critic"]["lr"] = 3e-2
    size = options.get("group", {}).get("size", MOST_ANSWERS)
    return merge_options(options, SMALL, {"group": {"size": min(size, MOST_ANSWERS)}})


def run(recipe: str, *, seed: int, updates: int, toy: str) -> dict[str, Any]:
    """Train a recipe on a toy and return its record.

    Args:
        recipe: Name of a preset, or of a default method.
        seed: Seed of the model and of everything that is sampled.
        updates: Number of updates of 8 rollouts.
        toy: Name of the toy.

    Returns:
        `recipe`, `seed`, `updates`, `toy`, mean returns `before` and `after`, and `cpu_seconds` of
        an update with its rollouts.
    """
    agents = ("left", "right")[: _num_agents(recipe)]
    learner: Any = mlrl_learners.make(
        _learner_of(recipe), agents=agents, model=toy_model(seed), seed=seed, **toy_options(recipe)
    )
    learner.plan_updates(updates)
    before = mean_return(TOYS[toy], learner, agents, seed=seed)
    started = time.process_time()
    for number in range(updates):
        learner.update(play_toy(TOYS[toy], learner, ROLLOUTS, seed=number))
    seconds = (time.process_time() - started) / updates
    after = mean_return(TOYS[toy], learner, agents, seed=seed)
    figures = {"before": before, "after": after, "cpu_seconds": round(seconds, 4)}
    return {"recipe": recipe, "seed": seed, "updates": updates, "toy": toy, **figures}


def rows(records: Sequence[Mapping[str, Any]], recipes: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each toy and recipe: the gain over the default, and the ratio of seconds.

    The gain is the mean over seeds of paired differences, with the 95 % interval of Student's t;
    there is none for a single seed.

    Args:
        records: Records of `run`, of the recipes and of their default methods.
        recipes: Names of the rows.
    """
    toys = dict.fromkeys(str(record["toy"]) for record in records)
    return [_row(records, toy, recipe) for toy in toys for recipe in recipes]


def _row(records: Sequence[Mapping[str, Any]], toy: str, recipe: str) -> dict[str, Any]:
    mine, theirs = (
        {each["seed"]: each for each in records if (each["toy"], each["recipe"]) == (toy, name)}
        for name in (recipe, default_of(recipe))
    )
    gains = [mine[seed]["after"] - theirs[seed]["after"] for seed in sorted(mine)]
    seconds = [mean([each["cpu_seconds"] for each in some.values()]) for some in (mine, theirs)]
    return {
        "toy": toy,
        "recipe": recipe,
        "default": default_of(recipe),
        "before": round(mean([each["before"] for each in mine.values()]), 4),
        "after": round(mean([each["after"] for each in mine.values()]), 4),
        "gain": round(mean(gains), 4),
        "half_width": half_width(gains),
        "gains": [round(gain, 4) for gain in gains],
        "cpu_seconds": round(seconds[0], 4),
        "seconds_ratio": round(seconds[0] / seconds[1], 2),
    }


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a Markdown table, with the columns of each toy side by side."""
    toys = list(dict.fromkeys(str(row["toy"]) for row in found))
    by_key = {(row["toy"], row["recipe"]): row for row in found}
    titles = [f"`{toy}`, best {TOYS[toy].optimum:.2f} | gain | CPU seconds" for toy in toys]
    lines = [
        f"| recipe | default | {' | '.join(titles)} |",
        "|---|---|" + "---|---|---|" * len(toys),
    ]
    for row in found[: len(found) // len(toys)]:
        cells = [_cells(by_key[toy, row["recipe"]]) for toy in toys]
        lines.append(f"| `{row['recipe']}` | `{row['default']}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> str:
    width = "" if row["half_width"] is None else f" ± {row['half_width']:.2f}"
    return (
        f"{row['before']:.2f} → {row['after']:.2f} | {round(row['gain'], 2) + 0.0:+.2f}{width} "
        f"| {row['seconds_ratio']:.1f} times"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is missing, print the table, and publish it if asked."""
    given = _parse(arguments)
    if given.publish and (lost := _lost(given)):
        print(f"--publish would lose stored results: {lost}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)  # seconds are those of one thread
    records = _trained(given)
    found = rows(records, given.recipes)
    print(json.dumps(found) if given.json else table(found))
    if given.publish:
        whole = {"updates": given.updates, "seeds": given.seeds, "rows": found}
        RESULTS.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(between(page, BEGIN, END, table(found)), encoding="utf-8")
    return 0


def _lost(given: argparse.Namespace) -> str:
    """Return which stored results are not asked for; empty if all are."""
    if not RESULTS.exists():
        return ""
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    asked = {(toy, recipe) for toy in given.toys for recipe in given.recipes}
    lost = [key for row in stored["rows"] if (key := (row["toy"], row["recipe"])) not in asked]
    names = [f"{recipe} on {toy}" for toy, recipe in lost]
    return ", ".join([*names, *(f"seed {n}" for n in range(given.seeds, stored["seeds"]))])


def _made(recipe: str, code: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record of a recipe depends on besides its key, as JSON values."""
    made = {"learner": _learner_of(recipe), "options": toy_options(recipe), "rollouts": ROLLOUTS}
    return dict(json.loads(json.dumps({**made, **code})))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.recipes.toys", description=__doc__)
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=RECIPES)
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--updates", type=int, default=40, help="updates per run")
    parser.add_argument("--toys", nargs="+", choices=sorted(TOYS), default=["late_cost", "doors"])
    parser.add_argument("--out", type=Path, default=Path("runs/recipes"), help="folder of records")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    parser.add_argument("--publish", action="store_true", help="write the results and the table")
    return parser.parse_args(arguments)


def _trained(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the records that are asked for, after training those that are missing."""
    file = JsonlFile(given.out / "records.jsonl")
    names = dict.fromkeys((*map(default_of, given.recipes), *given.recipes))
    code = program()
    made = {name: _made(name, code) for name in names}
    known: dict[tuple[Any, ...], dict[str, Any]] = {
        tuple(each[name] for name in ("toy", "seed", "recipe", "updates")): each
        for each in file.records()
        if each.get("made") == made.get(str(each["recipe"]))
    }
    records = []
    for toy in given.toys:
        for seed in range(given.seeds):
            for name in names:
                key = (toy, seed, name, given.updates)
                if key not in known:
                    record = run(name, seed=seed, updates=given.updates, toy=toy)
                    known[key] = {**record, "made": made[name]}
                    file.append(known[key])
                records.append(known[key])
    return records


def _learner_of(recipe: str) -> str:
    return recipe if recipe in ("magrpo", "grpo") else load_config(recipe).learner.name


def _num_agents(recipe: str) -> int:
    return 1 if registry[_learner_of(recipe)].max_agents == 1 else 2


if __name__ == "__main__":
    raise SystemExit(main())
