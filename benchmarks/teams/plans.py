"""The methods, and the configurations of runs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.teams.one_agent import ENV_ID
from benchmarks.teams.tasks import TeamTask
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RayConfig, RunConfig, TrainConfig

__all__ = [
    "METHODS",
    "PAIRS",
    "Method",
    "imitation_config",
    "run_config",
]

SHARED: Mapping[str, Any] = {
    "team": {"share_weights": True},
    "sampling": {"temperature": 1.0, "top_p": 1.0},
    "compute": {"max_rows": 256, "micro_batch_tokens": 16384},
}
ONE: Mapping[str, Any] = {key: value for key, value in SHARED.items() if key != "team"}
SFT: Mapping[str, Any] = {"optimizer": {"lr": 2e-3, "schedule": "linear"}}
GROUPS: Mapping[str, Any] = {
    "group": {"size": 1, "rollouts": 8},
    "baseline": {"group_by": "agent_turn"},
    "credit": {"gamma": 1.0},
    "optimizer": {"schedule": "linear"},
}
CRITIC: Mapping[str, Any] = {
    "group": {"size": 1},
    "credit": {"gamma": 1.0},
    "critic": {"kind": "separate", "lr": 2e-3, "value_coef": 1.0, "value_clip": math.inf},
    "optimizer": {"schedule": "linear", "epochs": 1, "num_minibatches": 2},
}


@dataclass(frozen=True)
class Method:
    """Who learns a task, and how.

    Attributes:
        label: How tables call it.
        learner: Name of the learner.
        options: Its options, without those of the task.
        is_team: Whether each agent of the task answers for itself; else one agent for all.
        rollouts: Episodes of a task in an update.
        ray: Options of sampling by other processes; none for the trainer itself.
    """

    label: str
    learner: str
    options: Mapping[str, Any]
    is_team: bool
    rollouts: int
    ray: Mapping[str, Any] = field(default_factory=dict)


METHODS: Mapping[str, Method] = {
    "magrpo": Method(
        "team, `magrpo`",
        "magrpo",
        merge_options(SHARED, GROUPS),
        is_team=True,
        rollouts=8,
    ),
    "ippo": Method("team, `ippo`", "ippo", merge_options(SHARED, CRITIC), is_team=True, rollouts=1),
    "one-magrpo": Method(
        "one agent, `magrpo`", "magrpo", merge_options(ONE, GROUPS), is_team=False, rollouts=8
    ),
    "grpo": Method(
        "one agent, `grpo`", "grpo", merge_options(ONE, GROUPS), is_team=False, rollouts=8
    ),
    "ppo": Method("one agent, `ppo`", "ppo", merge_options(ONE, CRITIC), is_team=False, rollouts=1),
}
PAIRS = (("magrpo", "one-magrpo"), ("magrpo", "grpo"), ("ippo", "ppo"))
"""Methods of a team and of one agent. `grpo` has its own loss and scale, the others are equal."""


def env_config(task: TeamTask, *, is_team: bool) -> EnvConfig:
    """Return the training environment of a task, with all agents or with the one agent."""
    if is_team:
        return EnvConfig(task.env_id, {"split": "train", **task.env})
    return EnvConfig(ENV_ID, {"split": "train", "team_env": task.env_id, **task.env})


def max_new_tokens(task: TeamTask, *, is_team: bool) -> int:
    """Return the longest answer: the one agent writes that of every agent, and separators."""
    return task.max_new_tokens if is_team else task.answers * (task.max_new_tokens + 1)


def imitation_config(
    task: TeamTask, model: str, play: str, seed: int, *, is_team: bool
) -> RunConfig:
    """Return the configuration of imitation, on as many answers for the team and the one agent."""
    options = merge_options(
        SHARED if is_team else ONE,
        SFT,
        {"examples": {"episodes": play, "batch_size": 64 if is_team else 64 // task.answers}},
        {"sampling": {"max_new_tokens": max_new_tokens(task, is_team=is_team)}},
    )
    train = TrainConfig(
        task.imitation, seed=seed, checkpoint_every=task.imitation, keep_checkpoints=1
    )
    learner = LearnerConfig("sft", model, options)
    return RunConfig(env_config(task, is_team=is_team), learner, train=train)


def run_config(task: TeamTask, method: Method, model: str, seed: int) -> RunConfig:
    """Return the configuration of learning.

    Args:
        task: What is learnt.
        method: Who learns it.
        model: Folder of the weights that imitation left.
        seed: Seed of the task order and of all sampling.
    """
    options = merge_options(
        {"optimizer": {"lr": task.lr}},
        method.options,
        {"sampling": {"max_new_tokens": max_new_tokens(task, is_team=method.is_team)}},
    )
    train = TrainConfig(
        iterations=task.updates,
        tasks_per_iteration=task.episodes // method.rollouts,
        seed=seed,
        checkpoint_every=task.updates // 2,
        keep_checkpoints=1,
        eval_every=task.updates // 3,
        eval_tasks=task.eval_tasks,
    )
    env = env_config(task, is_team=method.is_team)
    learner = LearnerConfig(method.learner, model, options)
    return RunConfig(env, learner, train=train, ray=RayConfig(**method.ray))
