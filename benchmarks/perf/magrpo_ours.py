"""Our side of `magrpo_step`, as a worker: rollouts, then one update, through the public API."""

import copy
import time
from collections.abc import Callable
from typing import Any

from benchmarks.perf.common import Measurement, peak_rss_mib, serve, versions


def prepare(setup: dict[str, Any]) -> tuple[Callable[[int], Measurement], dict[str, object]]:
    """Build learner and environments; nothing of this is timed."""
    import torch

    import mlrl_envs
    import mlrl_learners
    from mlrl_learners.metrics import count_tokens
    from mlrl_learners.rollout import collect_rollouts
    from mlrl_learners.types import RolloutConfig

    learner = mlrl_learners.make(
        "magrpo",
        agents=setup["agents"],
        model=setup["model"],
        group_size=setup["group_size"],
        max_new_tokens=setup["max_new_tokens"],
        temperature=setup["temperature"],
        top_p=setup["top_p"],
        lr=setup["learning_rate"],
        # What follows is how the peer's trainer does it, so that both sides do the same work.
        loss="sequence",
        normalize_std=setup["normalize"],
        skip_equal_groups=False,
        weight_decay=0.01,
        max_grad_norm=0.0,
        precision=setup["precision"],
    )
    env = mlrl_envs.make("mlrl/story-v0", split="all", reward="paper")
    rollout = RolloutConfig(num_samples=setup["group_size"])
    tasks = range(len(setup["prompts"]))

    def work(seed: int) -> Measurement:
        start, cpu_start = time.perf_counter(), time.process_time()
        batch = collect_rollouts(
            [copy.deepcopy(env) for _ in tasks],
            learner,
            rollout,
            task_options=[{"task_index": index} for index in tasks],
            seeds=[seed] * len(tasks),
        )
        collected = time.perf_counter()
        learner.update(batch.rollouts)
        end, cpu_end = time.perf_counter(), time.process_time()
        groups = [group for r in batch.rollouts for group in r.root.completions.values()]
        return {
            "seconds": end - start,
            "cpu_seconds": cpu_end - cpu_start,
            "rollout_seconds": collected - start,
            "update_seconds": end - collected,
            "samples": sum(len(group) for group in groups),
            "tokens": count_tokens(batch.rollouts),
            "prompt_tokens": sum(len(group[0].prompt_ids) for group in groups),
            "peak_rss_mib": peak_rss_mib(),
        }

    about = {
        "name": "mlrl",
        "versions": versions(["mlrl", "torch", "transformers"]),
        "threads": torch.get_num_threads(),
    }
    return work, about


if __name__ == "__main__":
    serve(prepare)
