"""Benchmark of one IPPO step of SmolLM2-135M against `IACTrainer` of `comlrl`.

Two agents with one model and one critic each, and one pass over the answers, as in the peer:
critics read everything once for the values, and actors and critics once for training.

    python -m benchmarks.perf.ippo_step [--tasks 8] [--max-new-tokens 96]
"""

from collections.abc import Sequence

from benchmarks.perf.versus import (
    Side,
    compare,
    model_folder,
    parse_step_arguments,
    story_prompts,
)
from benchmarks.perf.work import Work

__all__ = ["main"]

# One step of each optimizer per round, as in the peer.
AS_THE_PEER = {
    "critic": {"kind": "separate"},
    "optimizer": {"epochs": 1, "weight_decay": 0.01, "max_grad_norm": 0.0},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the result as one JSON line."""
    arguments = parse_step_arguments(
        argv, "One IPPO step, ours against comlrl's IAC.", tasks=8, group_size=4
    )
    with model_folder(smoke=arguments.smoke) as folder:
        work = Work(
            folder,
            story_prompts(arguments.tasks),
            group_size=arguments.group_size,
            max_new_tokens=arguments.max_new_tokens,
        )
        compare(
            "ippo_step",
            f"IPPO step, SmolLM2-135M, 2 agents, separate critics, {arguments.tasks} tasks, "
            f"{arguments.group_size} answers, {arguments.max_new_tokens} new tokens",
            work,
            [
                Side.ours("ippo", AS_THE_PEER, ("float32",)),
                Side.peer("ippo_comlrl", {"dtype": "float32"}, {"comlrl": {}}),
            ],
            [("ours, float32", "comlrl")],
            peer_name="comlrl 1.4.3 IAC",
            rounds=arguments.rounds,
            warmup=arguments.warmup,
            smoke=arguments.smoke,
        )


if __name__ == "__main__":
    main()
