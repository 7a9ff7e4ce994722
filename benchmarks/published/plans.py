"""Settings of published experiments: task, method, model, and the figures of their papers.

The settings are those of the public repositories of the authors (OpenMLRL/LLM_Collab_Writing,
LLM_Collab_Code_Generation, LLM_Collab_Minecraft) where ours has the same option; differences of the
methods are listed in the preset `humaneval-paper`. Rewards are the published ones (`paper`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["EXPERIMENTS", "SMOKE", "Experiment"]

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One row of the table.

    Attributes:
        preset: Preset of `mlrl train` whose settings hold where `options` names no other.
        model: Model of all agents, as the hub names it.
        options: Overrides of the preset: dotted keys and their values.
        smoke: Overrides of a smoke test besides `SMOKE`, such as a split that needs no download.
        published: Figures of the paper, for the table.
    """

    preset: str
    model: str
    options: Options
    smoke: Options = field(default_factory=dict)
    published: str = "-"


SMOKE: Options = {
    "learner.model": "tiny-random",
    "learner.sampling.max_new_tokens": 8,
    "learner.group.size": 2,
    "train.iterations": 2,
    "train.tasks_per_iteration": 1,
    "train.eval_every": 1,
    "train.eval_tasks": 1,
    "train.eval_samples": 1,
    "train.checkpoint_every": 1,
}
SAMPLE: Options = {"env.options.split": "sample", "train.eval_options": {"split": "sample"}}

WRITER, CODER, BUILDER = "Qwen/Qwen3-1.7B", "Qwen/Qwen2.5-Coder-3B", "Qwen/Qwen3-4B-Instruct-2507"

# Two passes over a thousand tasks, one task per update.
WRITING: Options = {
    "env.options": {"split": "train", "reward": "paper"},
    "learner.sampling.temperature": 0.7,
    "learner.sampling.top_p": 0.9,
    "learner.optimizer.lr": 5e-6,
    "train.iterations": 2000,
    "train.eval_every": 100,
    "train.eval_tasks": 50,
    "train.checkpoint_every": 50,
}
CODING: Options = {"train.checkpoint_every": 26}
# Eight passes over the 66 training tasks of CoopHumanEval.
COOP: Options = {
    **CODING,
    "env.id": "mlrl/coophumaneval-v1",
    "train.iterations": 528,
    "train.eval_every": 66,
}
# Twenty passes over eight strings, four turns.
BUILDING: Options = {
    "env.id": "mlrl/strbuild-v0",
    "env.options": {"split": "train", "reward": "paper", "max_turns": 4},
    "learner.group.size": 2,
    "learner.credit.gamma": 0.9,
    "learner.sampling.max_new_tokens": 512,
    "learner.optimizer.lr": 5e-6,
    "train.iterations": 160,
    "train.eval_every": 40,
    "train.eval_tasks": 2,
    "train.checkpoint_every": 8,
}
PROCEDURAL: Options = {
    "env.options.source": "procedural",
    "train.eval_options": {"split": "eval", "source": "procedural"},
}

# One critic per agent; one answer per prompt, four tasks per update. The passes over the training
# tasks are 20 in writing, 80 in coding and 150 in building.
CRITIC: Options = {
    "learner.group.size": 1,
    "learner.critic.lr": 5e-6,
    "learner.optimizer.lr": 5e-6,
    "train.tasks_per_iteration": 4,
}
WRITING_CRITIC: Options = {**WRITING, **CRITIC, "train.iterations": 5000, "train.eval_every": 250}
CODING_CRITIC: Options = {
    **CRITIC,
    "env.id": "mlrl/humaneval-v1",
    "env.options": {
        "split": "train", "max_turns": 2, "reward": "paper", "feedback": "diagnostics",
    },
    "learner.credit.gamma": 1.0,
    "learner.sampling.temperature": 0.6,
    "learner.sampling.top_p": 0.6,
    "learner.sampling.max_new_tokens": 256,
    "train.iterations": 2600,
    "train.eval_every": 130,
    "train.checkpoint_every": 26,
}  # fmt: skip
COOP_CRITIC: Options = {
    **CODING_CRITIC,
    "env.id": "mlrl/coophumaneval-v1",
    "train.iterations": 1320,
    "train.eval_every": 66,
}
BUILDING_CRITIC: Options = {
    **CRITIC,
    **BUILDING,
    "learner.group.size": 1,
    "learner.critic.lr": 2.5e-6,
    "learner.critic.value_clip": 0.05,
    "learner.optimizer.lr": 2.5e-6,
    "learner.sampling.temperature": 0.6,
    "learner.sampling.top_p": 0.6,
    "train.tasks_per_iteration": 1,
    "train.iterations": 1200,
    "train.eval_every": 120,
}

_IOU = "IoU 36.6 untrained, {} trained (arXiv 2601.21972)"
_TLDR, _ARXIV = {"env.id": "mlrl/tldr-v1"}, {"env.id": "mlrl/arxiv-v1"}

EXPERIMENTS: Mapping[str, Experiment] = {
    "tldr-magrpo": Experiment("humaneval-paper", WRITER, {**WRITING, **_TLDR}, SAMPLE),
    "tldr-iac": Experiment("iac", WRITER, {**WRITING_CRITIC, **_TLDR}, SAMPLE),
    "arxiv-magrpo": Experiment("humaneval-paper", WRITER, {**WRITING, **_ARXIV}, SAMPLE),
    "arxiv-iac": Experiment("iac", WRITER, {**WRITING_CRITIC, **_ARXIV}, SAMPLE),
    "coophumaneval-magrpo": Experiment("humaneval-paper", CODER, COOP, SAMPLE),
    "coophumaneval-iac": Experiment("iac", CODER, COOP_CRITIC, SAMPLE),
    "humaneval-magrpo": Experiment("humaneval-paper", CODER, CODING),
    "humaneval-iac": Experiment("iac", CODER, CODING_CRITIC),
    "strbuild-magrpo": Experiment(
        "humaneval-paper", BUILDER, BUILDING, PROCEDURAL, _IOU.format("50.6")
    ),
    "strbuild-iac": Experiment("iac", BUILDER, BUILDING_CRITIC, PROCEDURAL, _IOU.format("44.6")),
}
"""Experiments by name, in the order in which they run."""
