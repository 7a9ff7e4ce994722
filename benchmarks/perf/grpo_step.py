"""Figure: one GRPO step of SmolLM2-135M, ours against `trl`'s `GRPOTrainer`, in both dtypes.

One agent, eight prompts, G 8. Both sides sample all answers, score them by their length, and make
one optimizer step; `trl` on its `transformers` backend.

    python -m benchmarks.perf.grpo_step [--tasks 8] [--group-size 8] [--max-new-tokens 96]
"""

import argparse
from collections.abc import Sequence

from benchmarks.perf.versus import Side, add_arguments, compare, model_folder, story_prompts
from benchmarks.perf.work import Work

__all__ = ["main"]

# trl's defaults: no KL, clipping at 0.2, tokens weighted alike, gradients clipped to norm 1.
AS_THE_PEER = {
    "loss": "token_mean",
    "skip_equal_groups": False,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the figure as one JSON line."""
    parser = argparse.ArgumentParser(description="One GRPO step, ours against trl.")
    add_arguments(parser, tasks=8, group_size=8)
    parser.add_argument("--precisions", nargs="+", default=["float32", "bf16"])
    arguments = parser.parse_args(argv)
    precisions = arguments.precisions
    with model_folder(smoke=arguments.smoke) as folder:
        work = Work(
            folder,
            story_prompts(arguments.tasks, ("writer",)),
            group_size=arguments.group_size,
            max_new_tokens=arguments.max_new_tokens,
        )
        ways = {f"trl, {precision}": {"precision": precision} for precision in precisions}
        compare(
            "grpo_step",
            f"GRPO step, SmolLM2-135M, 1 agent, {arguments.tasks} prompts, "
            f"G {arguments.group_size}, {arguments.max_new_tokens} new tokens",
            work,
            [
                Side.ours("grpo", AS_THE_PEER, precisions),
                Side.peer("grpo_trl", {"precisions": precisions}, ways),
            ],
            [(f"ours, {precision}", f"trl, {precision}") for precision in precisions],
            peer_name="trl 1.16.0",
            rounds=arguments.rounds,
            warmup=arguments.warmup,
        )


if __name__ == "__main__":
    main()
