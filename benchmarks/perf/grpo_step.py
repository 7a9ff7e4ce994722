"""Benchmark of one GRPO step of SmolLM2-135M against `GRPOTrainer` of `trl`, in two data types.

One agent, eight prompts, G = 8. Both sides sample all answers, score them by their length, and take
one optimizer step; `trl` uses its `transformers` backend. Its trainer has one data type, so that
each data type has its own process; one learner of mlrl computes in both.

    python -m benchmarks.perf.grpo_step [--tasks 8] [--group-size 8] [--max-new-tokens 96]
"""

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

# Defaults of trl: no KL term, clipping at 0.2, equal token weights, gradient norm at most 1.
AS_THE_PEER = {
    "loss": {"kind": "token_mean"},
    "baseline": {"skip_equal_groups": False},
    "optimizer": {"weight_decay": 0.0, "max_grad_norm": 1.0},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the result as one JSON line."""
    arguments = parse_step_arguments(
        argv,
        "One GRPO step, ours against trl.",
        tasks=8,
        group_size=8,
        precisions=cpu_precisions(),
    )
    precisions = arguments.precisions
    with model_folder(smoke=arguments.smoke) as folder:
        work = Work(
            folder,
            story_prompts(arguments.tasks, ("writer",)),
            group_size=arguments.group_size,
            max_new_tokens=arguments.max_new_tokens,
        )
        compare(
            "grpo_step",
            f"GRPO step, SmolLM2-135M, 1 agent, {arguments.tasks} prompts, "
            f"G {arguments.group_size}, {arguments.max_new_tokens} new tokens",
            work,
            [
                Side.ours("grpo", AS_THE_PEER, precisions),
                *(
                    Side.peer("grpo_trl", {"precision": precision}, {f"trl, {precision}": {}})
                    for precision in precisions
                ),
            ],
            [(f"ours, {precision}", f"trl, {precision}") for precision in precisions],
            peer_name="trl 1.16.0",
            rounds=arguments.rounds,
            warmup=arguments.warmup,
            smoke=arguments.smoke,
        )


if __name__ == "__main__":
    main()
