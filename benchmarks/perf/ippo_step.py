"""Figure: one step of IPPO of SmolLM2-135M, ours against `comlrl`'s `IACTrainer`.

Two agents as two models, a critic of its own for each, and one pass over the answers, as the peer
does it: actors and critics read everything once to train, and critics once before, to judge.

    python -m benchmarks.perf.ippo_step [--tasks 8] [--max-new-tokens 96]
"""

import argparse
from collections.abc import Sequence

from benchmarks.perf.versus import Side, add_arguments, compare, model_folder, story_prompts
from benchmarks.perf.work import Work

__all__ = ["main"]

# One update of each optimizer a round, as the peer's.
AS_THE_PEER = {"critic": "separate", "epochs": 1, "weight_decay": 0.01, "max_grad_norm": 0.0}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the figure as one JSON line."""
    parser = argparse.ArgumentParser(description="One IPPO step, ours against comlrl's IAC.")
    add_arguments(parser, tasks=8, group_size=4)
    arguments = parser.parse_args(argv)
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
        )


if __name__ == "__main__":
    main()
