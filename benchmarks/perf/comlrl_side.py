"""What the sides of `comlrl` share: prompts, rewards, and counting what a trainer samples.

Runs in the peers' interpreter and imports nothing of ours but the work and the line protocol.
"""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.perf.common import Measurement, peak_rss_mib, versions
from benchmarks.perf.work import Work, revision

__all__ = ["about", "common_arguments", "measured_training"]


def common_arguments(work: Work) -> dict[str, Any]:
    """Return the arguments that every trainer there takes."""
    import transformers
    from datasets import Dataset

    tokenizer = transformers.AutoTokenizer.from_pretrained(work.model)
    return {
        "tokenizer": [tokenizer] * len(work.agents),
        "formatters": [functools.partial(_chat_item, tokenizer, agent) for agent in work.agents],
        "train_dataset": Dataset.from_list([dict(prompt) for prompt in work.prompts]),
        "external_transition": functools.partial(_next_prompts, tokenizer),
    }


def measured_training(
    trainer: Any,  # noqa: ANN401 - no types there
    sampler: str,
) -> Callable[..., Measurement]:
    """Return one call of `train()` as the work of a round.

    Args:
        trainer: What trains; its epochs are one, over all tasks.
        sampler: The name of its method that returns what it sampled.
    """
    import torch

    sampled = _count_tokens(trainer, sampler)

    def work(seed: int) -> Measurement:
        torch.manual_seed(seed)
        sampled.update(samples=0, tokens=0)
        start, cpu_start = time.perf_counter(), time.process_time()
        trainer.train()
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
        return {
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            **sampled,
            "peak_rss_mib": peak_rss_mib(),
        }

    return work


def about() -> dict[str, object]:
    """Return the facts about this side."""
    import torch

    return {
        "name": "comlrl",
        "versions": versions(["comlrl", "torch", "transformers"]),
        "threads": torch.get_num_threads(),
    }


def _chat_item(
    tokenizer: Any,  # noqa: ANN401
    agent: str,
    item: Mapping[str, str],
    external_prompts: str | None = None,
) -> str:
    return external_prompts or _chat(tokenizer, item[agent])


def _chat(tokenizer: Any, text: str) -> str:  # noqa: ANN401
    message = [{"role": "user", "content": text}]
    prompt: str = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
    return prompt


def _next_prompts(
    tokenizer: Any,  # noqa: ANN401
    *,
    agent_completions: Sequence[str],
    prompt_history_per_agent: Sequence[Sequence[str]],
    **_: object,
) -> list[str]:
    """Return what our environment gives to read at the next turn."""
    before = [_unchat(tokenizer, history[-1]) for history in prompt_history_per_agent]
    return [
        _chat(tokenizer, revision(prompt, answer))
        for prompt, answer in zip(before, agent_completions, strict=True)
    ]


def _unchat(tokenizer: Any, prompt: str) -> str:  # noqa: ANN401
    head, _, tail = _chat(tokenizer, "\0").partition("\0")
    return prompt.removeprefix(head).removesuffix(tail)


def _count_tokens(trainer: Any, sampler: str) -> dict[str, int]:  # noqa: ANN401
    """Count what the trainer samples, from outside."""
    sampled = {"samples": 0, "tokens": 0}
    sample = getattr(trainer, sampler)

    @functools.wraps(sample)
    def counted(*args: object, **kwargs: object) -> dict[str, Any]:
        data: dict[str, Any] = sample(*args, **kwargs)
        sampled["samples"] += len(data["response_lens"])
        sampled["tokens"] += sum(data["response_lens"])
        return data

    setattr(trainer, sampler, counted)
    return sampled
