"""Benchmark of one MAGRPO step of SmolLM2-135M against `MAGRPOTrainer` of `comlrl`.

A step samples G answers per agent and task, scores them, computes group-relative advantages, and
takes one forward and backward pass per sample and one AdamW step per agent. There are two agents
with two models, the prompts of the story task in the chat template of the model, and the same
sampling settings. Both sides load a model whose end-of-sequence token is never sampled, so that
every answer has exactly `max_new_tokens` tokens. With two turns every joint action is continued,
and agents read their own answer again. The peer computes in float32; mlrl in float32 and, in
separate rounds and on CPUs that have such instructions, under bfloat16 autocast.

    python -m benchmarks.perf.magrpo_step [--tasks 1] [--max-new-tokens 96] [--turns 1]
"""

import argparse
from collections.abc import Sequence

from benchmarks.perf.common import cpu_precisions
from benchmarks.perf.versus import (
    Side,
    compare,
    model_folder,
    parse_step_arguments,
    story_prompts,
)
from benchmarks.perf.work import Work

__all__ = ["main"]

# Settings of the trainer of the peer, so that both sides do the same work.
AS_THE_PEER = {
    "loss": {"kind": "sequence"},
    "baseline": {"normalize_std": False, "skip_equal_groups": False},
    "optimizer": {"weight_decay": 0.01, "max_grad_norm": 0.0},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the result as one JSON line."""
    arguments = _parse(argv)
    with model_folder(smoke=arguments.smoke) as folder:
        work = Work(
            folder,
            story_prompts(arguments.tasks),
            group_size=arguments.group_size,
            max_new_tokens=arguments.max_new_tokens,
            turns=arguments.turns,
        )
        compare(
            "magrpo_step",
            _title(arguments),
            work,
            [
                Side.ours("magrpo", AS_THE_PEER, arguments.precisions),
                Side.peer("magrpo_comlrl", {"dtype": "float32"}, {"comlrl": {}}),
            ],
            [(f"ours, {precision}", "comlrl") for precision in arguments.precisions],
            peer_name="comlrl 1.4.3, float32",
            rounds=arguments.rounds,
            warmup=arguments.warmup,
            smoke=arguments.smoke,
        )


def _title(arguments: argparse.Namespace) -> str:
    turns = f", {arguments.turns}-turn tree" if arguments.turns > 1 else ""
    tasks = f"{arguments.tasks} task" + "s" * (arguments.tasks > 1)
    return (
        f"MAGRPO step, SmolLM2-135M, 2 agents, {tasks}{turns}, G {arguments.group_size}, "
        f"{arguments.max_new_tokens} new tokens"
    )


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    return parse_step_arguments(
        argv,
        "One MAGRPO step, ours against comlrl.",
        tasks=1,
        group_size=4,
        turns=1,
        precisions=cpu_precisions(),
    )


if __name__ == "__main__":
    main()
