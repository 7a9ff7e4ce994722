"""The tasks on which recipes are compared, and the configuration of a recipe on each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.recipes import recipe_options
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig, load_config

__all__ = ["DEFAULT", "SHARED", "TASKS", "Task", "run_config"]

DEFAULT = "magrpo"
SHARED: Mapping[str, Any] = {
    "team": {"share_weights": True},
    "compute": {"precision": "bf16", "micro_batch_tokens": 2048},
}


@dataclass(frozen=True)
class Imitation:
    """Training by `sft` on reference solutions before a recipe.

    Attributes:
        demonstrations: Number of reference solutions.
        iterations: Number of updates of 8 solutions.
        lr: Learning rate.
    """

    demonstrations: int
    iterations: int
    lr: float


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
    """

    env_id: str
    env: Mapping[str, Any]
    learner: Mapping[str, Any]
    iterations: int
    answers: int
    eval_tasks: int | None
    eval_samples: int
    imitation: Imitation | None = field(default=None)


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
        "mlrl/math-v1",
        {"max_turns": 1, "topics": ["arithmetic"], "levels": [1]},
        {
            "sampling": {"max_new_tokens": 40, "temperature": 1.0, "top_p": 1.0},
            "optimizer": {"lr": 2e-5},
        },
        iterations=16,
        answers=32,
        eval_tasks=64,
        eval_samples=1,
        imitation=Imitation(demonstrations=960, iterations=120, lr=5e-5),
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
