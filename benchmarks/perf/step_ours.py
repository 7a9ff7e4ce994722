"""Worker with a training step of mlrl: rollouts and one update, through the public API."""

import time
from collections.abc import Callable
from typing import Any

from benchmarks.perf.common import Measurement, peak_rss_mib, serve, versions
from benchmarks.perf.work import Work
from mlrl_learners.config.option_places import merge_options

__all__ = ["build", "prepare"]


def prepare(setup: dict[str, Any]) -> tuple[Callable[..., Measurement], dict[str, object]]:
    """Build learner and environments; not timed.

    Args:
        setup: The work, and the name of the `learner` with its `options`.
    """
    import torch

    _, step = build(setup)
    about = {
        "name": "mlrl",
        "versions": versions(["mlrl", "torch", "transformers"]),
        "threads": torch.get_num_threads(),
    }
    return step, about


def build(setup: dict[str, Any]) -> tuple[Any, Callable[..., Measurement]]:
    """Return the learner and the work of a round, one step."""
    import mlrl_learners
    from benchmarks.perf.writers import Writers
    from mlrl_learners.play.rollout import collect_rollouts
    from mlrl_learners.types import RolloutConfig

    name, options = setup.pop("learner"), setup.pop("options", {})
    work = Work(**setup)
    learner: Any = mlrl_learners.make(
        name,
        agents=work.agents,
        model=work.model,
        **merge_options(
            options,
            {
                "sampling": {
                    "max_new_tokens": work.max_new_tokens,
                    "temperature": work.temperature,
                    "top_p": work.top_p,
                },
                "optimizer": {"lr": work.learning_rate},
                "group": {"size": work.group_size},
            },
        ),
    )
    rollout = RolloutConfig(num_samples=work.group_size)
    tasks = range(len(work.prompts))

    def step(seed: int, precision: str = "float32") -> Measurement:
        for policy in learner.policies.values():
            policy.precision = precision
        start, cpu_start = time.perf_counter(), time.process_time()
        batch = collect_rollouts(
            [Writers(work.prompts, work.turns) for _ in tasks],
            learner,
            rollout,
            task_options=[{"task_index": index} for index in tasks],
            seeds=[seed] * len(tasks),
        )
        collected = time.perf_counter()
        learner.update(batch.rollouts)
        end, cpu_end = time.perf_counter(), time.process_time()
        groups = [
            group
            for played in batch.rollouts
            for node in played.root.walk()
            for group in node.completions.values()
        ]
        return {
            "seconds": end - start,
            "cpu_seconds": cpu_end - cpu_start,
            "rollout_seconds": collected - start,
            "update_seconds": end - collected,
            "samples": sum(len(group) for group in groups),
            "tokens": sum(len(answer.token_ids) for group in groups for answer in group),
            "prompt_tokens": sum(len(group[0].prompt_ids) for group in groups),
            "peak_rss_mib": peak_rss_mib(),
        }

    return learner, step


if __name__ == "__main__":
    serve(prepare)
