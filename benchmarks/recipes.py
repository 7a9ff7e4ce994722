"""Published recipes on a toy: gain over the default method, and seconds per update.

Each recipe is a preset; its learner and options are taken from the file, with the tiny model of the
toys, answers of one token, and one learning rate for all. The default is `magrpo` with its default
options, or `grpo` for one agent, at the same size. A run takes seconds; finished runs are kept, so
that the command continues where it was stopped.

    python -m benchmarks.recipes --seeds 3 --out runs/recipes
    python -m benchmarks.recipes --recipes drmas dapo --updates 10 --json

`group.resample` is part of the training loop of runs and has no effect here.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import load_config
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import JsonlFile
from mlrl_learners.registry import registry
from mlrl_learners.testing.gradients import play_toy
from mlrl_learners.testing.toy_model import toy_model
from mlrl_learners.testing.toy_training import mean_return
from mlrl_learners.testing.toys import TOYS

__all__ = ["RECIPES", "main", "rows", "run", "table", "toy_options"]

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


def toy_options(recipe: str) -> dict[str, Any]:
    """Return the options of a recipe at the size of the toy; of a default method, none of its own.

    Args:
        recipe: Name of a preset, or of a default method.
    """
    options: dict[str, Any] = {}
    if recipe not in ("magrpo", "grpo"):
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
        if "critic" in options:
            options["critic"]["lr"] = 3e-2
        if options.get("penalty", {}).get("overlong") == "soft":
            options["penalty"]["overlong_buffer"] = 1  # the only token of an answer
    size = options.get("group", {}).get("size", MOST_ANSWERS)
    return merge_options(options, SMALL, {"group": {"size": min(size, MOST_ANSWERS)}})


def run(recipe: str, *, seed: int, updates: int, toy: str = "late_cost") -> dict[str, Any]:
    """Train a recipe on a toy and return its record.

    Args:
        recipe: Name of a preset, or of a default method.
        seed: Seed of the model and of everything that is sampled.
        updates: Number of updates of 8 rollouts.
        toy: Name of the toy.

    Returns:
        `recipe`, `seed`, `updates`, `toy`, mean returns `before` and `after`, and `seconds` per
        update with its rollouts.
    """
    name = recipe if recipe in ("magrpo", "grpo") else load_config(recipe).learner.name
    agents = ("left", "right")[: _num_agents(recipe)]
    learner: Any = mlrl_learners.make(
        name, agents=agents, model=toy_model(seed), seed=seed, **toy_options(recipe)
    )
    learner.plan_updates(updates)
    before = mean_return(TOYS[toy], learner, agents, seed=seed)
    started = time.perf_counter()
    for number in range(updates):
        learner.update(play_toy(TOYS[toy], learner, ROLLOUTS, seed=number))
    seconds = (time.perf_counter() - started) / updates
    after = mean_return(TOYS[toy], learner, agents, seed=seed)
    figures = {"before": before, "after": after, "seconds": round(seconds, 4)}
    return {"recipe": recipe, "seed": seed, "updates": updates, "toy": toy, **figures}


def rows(records: Sequence[Mapping[str, Any]], recipes: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each recipe: gains over the default by seed, and the ratio of seconds.

    Args:
        records: Records of `run`, of the recipes and of their default methods.
        recipes: Names of the rows.
    """
    by_recipe: dict[str, dict[int, Mapping[str, Any]]] = {}
    for record in records:
        by_recipe.setdefault(str(record["recipe"]), {})[int(record["seed"])] = record
    found = []
    for recipe in recipes:
        mine, theirs = by_recipe[recipe], by_recipe[default_of(recipe)]
        gains = [mine[seed]["after"] - theirs[seed]["after"] for seed in sorted(mine)]
        seconds = [mean([each["seconds"] for each in some.values()]) for some in (mine, theirs)]
        found.append(
            {
                "recipe": recipe,
                "default": default_of(recipe),
                "before": mean([each["before"] for each in mine.values()]),
                "after": mean([each["after"] for each in mine.values()]),
                "gains": [round(gain, 3) for gain in gains],
                "seconds": seconds[0],
                "seconds_ratio": seconds[0] / seconds[1],
            }
        )
    return found


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    lines = [
        "| recipe | default | return before | after | gain over the default, by seed | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for row in found:
        gains = ", ".join(f"{gain:+.2f}" for gain in row["gains"])
        lines.append(
            f"| `{row['recipe']}` | `{row['default']}` | {row['before']:.2f} | {row['after']:.2f} "
            f"| {gains} | {row['seconds_ratio']:.1f} times |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is missing, and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.recipes", description=__doc__)
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=RECIPES)
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--updates", type=int, default=40, help="updates per run")
    parser.add_argument("--toy", choices=sorted(TOYS), default="late_cost")
    parser.add_argument("--out", type=Path, default=Path("runs/recipes"), help="folder of records")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    file = JsonlFile(given.out / "records.jsonl")
    asked = {"updates": given.updates, "toy": given.toy}
    records = [each for each in file.records() if asked.items() <= each.items()]
    known = {(each["recipe"], each["seed"]) for each in records}
    names = dict.fromkeys((*map(default_of, given.recipes), *given.recipes))
    for seed in range(given.seeds):
        for name in names:
            if (name, seed) not in known:
                record = run(name, seed=seed, **asked)
                file.append(record)
                records.append(record)
    records = [each for each in records if int(str(each["seed"])) < given.seeds]
    found = rows(records, given.recipes)
    print(json.dumps(found) if given.json else table(found))
    return 0


def _num_agents(recipe: str) -> int:
    if recipe in ("magrpo", "grpo"):
        return 1 if recipe == "grpo" else 2
    spec = registry[load_config(recipe).learner.name]
    return 1 if spec.max_agents == 1 else 2


if __name__ == "__main__":
    raise SystemExit(main())
