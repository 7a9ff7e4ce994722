"""The tasks, how each is learnt, and the configurations of runs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.games.model import ModelSize
from benchmarks.teams.one_agent import ENV_ID
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RayConfig, RunConfig, TrainConfig

__all__ = [
    "METHODS",
    "PAIRS",
    "TASKS",
    "Method",
    "TeamTask",
    "imitation_config",
    "run_config",
]

# With 1e-3, which suits the few tokens of a move, returns of answers of 100 tokens fell.
TEXT_LR = 2e-4
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
    "grpo": Method(
        "one agent, `grpo`", "grpo", merge_options(ONE, GROUPS), is_team=False, rollouts=8
    ),
    "ppo": Method("one agent, `ppo`", "ppo", merge_options(ONE, CRITIC), is_team=False, rollouts=1),
}
PAIRS = (("magrpo", "grpo"), ("ippo", "ppo"))
"""Methods of a team and of one agent that differ in nothing else."""


@dataclass(frozen=True)
class TeamTask:
    """A task, the model that learns it, and the work of imitation and learning.

    Attributes:
        env_id: The environment.
        env: Its options.
        scripts: Scripts that are imitated, one drawn for each turn, see `scripted_actions`.
        references: Scripts whose held-out returns stand beside the results.
        answers: Agents that act in a turn, at most; the one agent writes as many answers at once.
        max_new_tokens: Longest answer of one agent.
        unread: Regular expressions of text that the model does not read.
        games: Number of imitated games.
        imitation: Number of updates of imitation.
        updates: Number of updates of learning.
        episodes: Episodes of an update, a multiple of 8.
        lr: Learning rate of learning.
        eval_tasks: Number of held-out tasks.
        size: Size of the model.
        digits: Whether each digit is a token, and tokens keep the white space before them.
    """

    env_id: str
    env: Mapping[str, Any]
    scripts: tuple[str, ...]
    references: tuple[str, ...]
    answers: int
    max_new_tokens: int
    unread: tuple[str, ...]
    games: int = 2000
    imitation: int = 400
    updates: int = 60
    episodes: int = 128
    lr: float = 1e-3
    eval_tasks: int = 200
    size: ModelSize = field(default_factory=ModelSize)
    digits: bool = False


TASKS: Mapping[str, TeamTask] = {
    "network": TeamTask(
        "mlrl/network-v0",
        {"num_agents": 4, "rounds": 2},
        scripts=("random", "local"),
        references=("random", "local", "central"),
        answers=4,
        max_new_tokens=4,
        unread=(
            r"You are a node of a network[^\n]*",
            r"Answer for .*? in between\.",
            r"send your neighbours a short message: <move>\.\.\.</move>",
            r": <move>\.\.\.</move>",
            r"You are node",
            r"Your neighbours",
        ),
    ),
    "puzzle": TeamTask(
        "mlrl/puzzle-v0",
        {"size": 5},
        scripts=("random", "compass"),
        references=("random", "compass", "optimal"),
        answers=1,
        max_new_tokens=7,
        unread=(
            r"You are the (planner|executor):[^\n]*",
            r"# wall, R robot, G goal[^\n]*",
            r"Answer for .*? in between\.",
            r"Answer with one of them: <move>\.\.\.</move>",
            r"Tell the executor its next \d+ moves: <move>\.\.\.</move>",
            r"Moves: [a-z, ]+",
            r"Around you|The planner said|Your moves since then",
        ),
    ),
    "functions": TeamTask(
        "mlrl/functions-v0",
        {"topics": ["numbers"], "levels": [2], "num_tasks": 2000, "max_turns": 1},
        scripts=("reference", "together"),
        references=("reference", "together"),
        answers=2,
        max_new_tokens=128,
        unread=(
            r"Python problem:|\"\"\"|Take `[^\n]*|>>> [^\n]*\n[^\n]*\n",
            r", one of 2 programmers[\s\S]*?and nothing else\.",
            r"Answer for .*? in between\.",
        ),
        imitation=800,
        episodes=64,
        lr=TEXT_LR,
        eval_tasks=100,
        digits=True,
    ),
    "coder-tester": TeamTask(
        "mlrl/coder-tester-v0",
        {
            "dataset": "functions",
            "topics": ["numbers"],
            "levels": [1],
            "max_turns": 2,
            "num_tests": 3,
        },
        scripts=("careless", "thorough"),
        references=("careless", "thorough"),
        answers=1,
        max_new_tokens=96,
        unread=(
            r"Python problem:|\"\"\"|Take `[^\n]*|>>> [^\n]*\n[^\n]*\n",
            r"You are the (coder|tester):[\s\S]*?(and nothing else\.|arguments and results\.)",
            r"Results of the last code:[\s\S]*?(?=Write your tests)",
            r"Answer for .*? in between\.",
        ),
        imitation=800,
        episodes=64,
        lr=TEXT_LR,
        eval_tasks=100,
        digits=True,
    ),
    "tools": TeamTask(
        "mlrl/tools-v1",
        {"kinds": ["cargo"], "levels": [1], "num_tasks": 2000},
        scripts=("careful", "careful", "careful", "careful", "hasty"),
        references=("hasty", "careful"),
        answers=2,
        max_new_tokens=48,
        unread=(
            r", one of 2 agents who[^\n]*",
            r"Question: What does the whole[^\n]*",
            r"The archive never names ships\. The \w+ is the vessel",
            r"In this harbour a crate of|How many crates the[^\n]*",
            r"These tools are enough:[\s\S]*?Your part:[^\n]*",
            r"The vessel entered as [^\n]*? with",
            r"Feedback on the last turn:[\s\S]*?same format as before\.",
            r"Answer for .*? in between\.",
        ),
        imitation=1500,
        episodes=64,
        lr=TEXT_LR,
        eval_tasks=100,
        size=ModelSize(max_tokens=1024),
        digits=True,
    ),
    "strbuild": TeamTask(
        "mlrl/strbuild-v0",
        {"source": "procedural", "levels": [1, 2], "max_turns": 1},
        scripts=("half", "reference"),
        references=("half", "reference"),
        answers=2,
        max_new_tokens=224,
        unread=(
            r"Write the string [A-Z]+ with blocks on a wall\.",
            r"; builder_\d works on the same wall[^\n]*",
            r"The wall: x from[^\n]*",
            r"Your blocks:[\s\S]*?/setblock x y 0 block",
            r"Answer for .*? in between\.",
        ),
        games=1000,
        imitation=500,
        updates=42,
        episodes=64,
        lr=TEXT_LR,
        eval_tasks=100,
        size=ModelSize(max_tokens=1024),
        digits=True,
    ),
}


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
