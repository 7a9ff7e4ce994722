"""Figure: one MAGRPO step of SmolLM2-135M, ours against `comlrl`'s `MAGRPOTrainer`.

A step is what both sides call one: sample G answers an agent for every task, score them, compute
group-relative advantages, one forward and backward of every sample, one AdamW step an agent. Two
agents as two models, the story task's own prompts in the model's chat template, the same sampling
settings, and a length that never varies: both sides load a folder whose end-of-sequence is a
token the model never writes, so every sample has exactly `max_new_tokens` tokens. With two turns
every joint action is gone on from, and its agents read their own answer again. The peer computes in
float32; our side in float32 and, in turns of its own, under bfloat16 autocast.

    python -m benchmarks.perf.magrpo_step [--tasks 1] [--max-new-tokens 96] [--turns 1]
"""

import argparse
from collections.abc import Sequence

from benchmarks.perf.versus import Side, add_arguments, compare, model_folder, story_prompts
from benchmarks.perf.work import Work

__all__ = ["main"]

PRECISIONS = ("float32", "bf16")
# How the peer's trainer does it, so that both sides do the same work.
AS_THE_PEER = {
    "loss": "sequence",
    "normalize_std": False,
    "skip_equal_groups": False,
    "weight_decay": 0.01,
    "max_grad_norm": 0.0,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the figure as one JSON line."""
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
                Side.ours("magrpo", AS_THE_PEER, PRECISIONS),
                Side.peer("magrpo_comlrl", {"dtype": "float32"}, {"comlrl": {}}),
            ],
            [(f"ours, {precision}", "comlrl") for precision in PRECISIONS],
            peer_name="comlrl 1.4.3, float32",
            rounds=arguments.rounds,
            warmup=arguments.warmup,
        )


def _title(arguments: argparse.Namespace) -> str:
    turns = f", {arguments.turns}-turn tree" if arguments.turns > 1 else ""
    tasks = f"{arguments.tasks} task" + "s" * (arguments.tasks > 1)
    return (
        f"MAGRPO step, SmolLM2-135M, 2 agents, {tasks}{turns}, G {arguments.group_size}, "
        f"{arguments.max_new_tokens} new tokens"
    )


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="One MAGRPO step, ours against comlrl.")
    add_arguments(parser, tasks=1, group_size=4)
    parser.add_argument("--turns", type=int, default=1)
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
