"""The tasks on which recipes are compared, and the configuration of a recipe on each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.games.model import ModelSize
from benchmarks.recipes.toys import recipe_options
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig, load_config

__all__ = ["DEFAULT", "SHARED", "SMOLLM", "TASKS", "Imitation", "SmallModel", "Task", "run_config"]

DEFAULT = "magrpo"
SMOLLM = "smollm2-135m-instruct"
IMITATED = 12  # problem seeds of `small-math` that are imitated; recipes train on the next one
SHARED: Mapping[str, Any] = {
    "team": {"share_weights": True},
    "compute": {"precision": "bf16", "micro_batch_tokens": 2048},
}


@dataclass(frozen=True)
class Imitation:
    """Training by `sft` on reference solutions before a recipe.

    Attributes:
        options: Options of `sft`.
        demonstrations: Number of tasks whose reference solutions are imitated, of each variant.
        iterations: Number of updates.
        variants: Options of the environment besides those of the task; all are of the train split.
    """

    options: Mapping[str, Any]
    demonstrations: int
    iterations: int
    variants: tuple[Mapping[str, Any], ...] = ({},)


@dataclass(frozen=True)
class SmallModel:
    """A small Llama with random weights, with the words and digits of the demonstrations.

    Attributes:
        name: What the results call it.
        size: Its size.
        unread: Regular expressions of text that it does not read.
        seed: Seed of its weights.
    """

    name: str
    size: ModelSize
    unread: tuple[str, ...]
    seed: int = 0


@dataclass(frozen=True)
class Task:
    """What all recipes train on.

    Attributes:
        env_id: The environment.
        env: Its options.
        learner: Options of all learners.
        iterations: Number of updates.
        answers: Number of answers of each agent in an update.
        eval_tasks: Number of held-out tasks; None for all.
        eval_samples: Number of sampled episodes of each.
        imitation: Training before the recipe, if any.
        model: The model, by name or made here; the latter needs `imitation`.
    """

    env_id: str
    env: Mapping[str, Any]
    learner: Mapping[str, Any]
    iterations: int
    answers: int
    eval_tasks: int | None
    eval_samples: int
    imitation: Imitation | None = None
    model: str | SmallModel = SMOLLM


TASKS: Mapping[str, Task] = {
    "story": Task(
        "mlrl/story-v1",
        # The reward that tells bad stories apart, too: most stories of an untrained model earn 0
        # with `judged`, so that groups have no variance.
        {"reward": "grounded"},
        {
            "sampling": {"max_new_tokens": 72, "temperature": 0.8, "top_p": 0.95},
            "optimizer": {"lr": 5e-5},
        },
        iterations=12,
        answers=12,
        eval_tasks=None,
        eval_samples=3,
    ),
    "math": Task(
        "mlrl/math-v2",
        {"max_turns": 1, "topics": ["arithmetic"], "levels": [1]},
        {
            "sampling": {"max_new_tokens": 40, "temperature": 1.0, "top_p": 1.0},
            "optimizer": {"lr": 2e-5},
        },
        iterations=16,
        answers=32,
        eval_tasks=64,
        eval_samples=1,
        imitation=Imitation(
            {"examples": {"batch_size": 8}, "optimizer": {"lr": 5e-5}},
            demonstrations=960,
            iterations=120,
        ),
    ),
    "small-math": Task(
        "mlrl/math-v2",
        {"max_turns": 1, "topics": ["arithmetic"], "levels": [1], "problem_seed": IMITATED},
        {
            "sampling": {"max_new_tokens": 20, "temperature": 1.0, "top_p": 1.0},
            "optimizer": {"lr": 3e-4, "schedule": "linear"},
            "compute": {"precision": "float32", "micro_batch_tokens": 16384, "max_rows": 512},
        },
        iterations=30,
        answers=256,
        eval_tasks=None,
        eval_samples=1,
        imitation=Imitation(
            {
                "examples": {"batch_size": 64},
                "optimizer": {"lr": 3e-3, "schedule": "linear"},
            },
            demonstrations=1000,
            iterations=2400,
            variants=tuple({"problem_seed": seed} for seed in range(IMITATED)),
        ),
        model=SmallModel(
            "a Llama with 2 layers of 64, random weights",
            ModelSize(),
            unread=(r"Problem: What is ", r"\?\n\nYou are ", r"\. A teammate[\s\S]*?<number>"),
        ),
    ),
}


def run_config(plan: Task, recipe: str, seed: int, model: str) -> RunConfig:
    """Return the configuration of a run.

    Args:
        plan: What is trained on.
        recipe: Name of a preset, or `magrpo` for the default options.
        seed: Seed of the task order and of all sampling.
        model: Model from which both agents start.
    """
    name = DEFAULT if recipe == DEFAULT else load_config(recipe).learner.name
    options = merge_options(recipe_options(recipe), SHARED, plan.learner)
    tasks = plan.answers // options.get("group", {}).get("size", 4)
    train = TrainConfig(
        iterations=plan.iterations,
        tasks_per_iteration=tasks,
        seed=seed,
        checkpoint_every=5,
        keep_checkpoints=1,
        eval_every=plan.iterations,
        eval_tasks=plan.eval_tasks,
        eval_samples=plan.eval_samples,
    )
    env = EnvConfig(plan.env_id, {"split": "train", **plan.env})
    return RunConfig(env, LearnerConfig(name, model, options), train=train)
