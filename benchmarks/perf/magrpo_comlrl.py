"""The peer's side of `magrpo_step`: `comlrl.trainers.reinforce.MAGRPOTrainer`, as a worker.

Runs in the peers' interpreter and imports nothing of ours but the line protocol. One round is one
call of `train()` over the tasks: `rollout_buffer_size` equals their number, so it ends in one
optimizer step an agent, as ours does.
"""

import functools
import math
import time
from collections.abc import Callable
from typing import Any

from benchmarks.perf.common import Measurement, peak_rss_mib, serve, versions


def story_reward(setups: list[str], stories: list[str]) -> list[float]:
    """Score by the length ratio alone, the published formula of the story task."""
    rewards = []
    for setup, story in zip(setups, stories, strict=True):
        ratio = len(story) / len(setup) if setup else None
        distance = 0.0 if ratio is None else max(2.0 - ratio, ratio - 3.0, 0.0)
        rewards.append(0.0 if ratio is None else math.exp(-distance))
    return rewards


def prepare(
    setup: dict[str, Any],
) -> tuple[Callable[[int], Measurement], dict[str, object]]:
    """Build the trainer; nothing of this is timed."""
    import torch
    import transformers
    from comlrl.trainers.reinforce import MAGRPOConfig, MAGRPOTrainer
    from datasets import Dataset

    tokenizer = transformers.AutoTokenizer.from_pretrained(setup["model"])
    agents: list[str] = setup["agents"]
    trainer = MAGRPOTrainer(
        agents=[setup["model"]] * len(agents),
        num_agents=len(agents),
        tokenizer=[tokenizer] * len(agents),
        model_config={"torch_dtype": getattr(torch, setup["dtype"])},
        reward_func=story_reward,
        formatters=[functools.partial(_chat, tokenizer, agent) for agent in agents],
        train_dataset=Dataset.from_list(setup["prompts"]),
        args=MAGRPOConfig(
            num_train_epochs=1,
            num_agents=len(agents),
            num_turns=1,
            num_generations=setup["group_size"],
            max_new_tokens=setup["max_new_tokens"],
            temperature=setup["temperature"],
            top_p=setup["top_p"],
            top_k=0,
            agent_learning_rate=setup["learning_rate"],
            rollout_buffer_size=len(setup["prompts"]),
            train_batch_size=len(setup["prompts"]),
            advantage_normalization=setup["normalize"],
            eval_interval=0,
        ),
    )
    sampled = _count_tokens(trainer)

    def work(seed: int) -> Measurement:
        torch.manual_seed(seed)
        sampled.update(samples=0, tokens=0, prompt_tokens=0)
        start, cpu_start = time.perf_counter(), time.process_time()
        trainer.train()
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
        return {
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            **sampled,
            "peak_rss_mib": peak_rss_mib(),
        }

    about = {
        "name": "comlrl",
        "versions": versions(["comlrl", "torch", "transformers"]),
        "threads": torch.get_num_threads(),
    }
    return work, about


def _chat(tokenizer: Any, agent: str, item: dict[str, str]) -> str:  # noqa: ANN401 # any tokenizer
    text: str = tokenizer.apply_chat_template(
        [{"role": "user", "content": item[agent]}], tokenize=False, add_generation_prompt=True
    )
    return text


def _count_tokens(trainer: Any) -> dict[str, int]:  # noqa: ANN401 # no types there
    """Count what the trainer samples, from outside."""
    sampled = {"samples": 0, "tokens": 0, "prompt_tokens": 0}
    generate = trainer._generate_completions  # noqa: SLF001 # the only place that has the ids

    @functools.wraps(generate)
    def counted(*args: object, **kwargs: object) -> dict[str, Any]:
        data: dict[str, Any] = generate(*args, **kwargs)
        sampled["samples"] += len(data["response_lens"])
        sampled["tokens"] += sum(data["response_lens"])
        sampled["prompt_tokens"] += int(data["prompt_input_ids"].numel())
        return data

    trainer._generate_completions = counted  # noqa: SLF001
    return sampled


if __name__ == "__main__":
    serve(prepare)
