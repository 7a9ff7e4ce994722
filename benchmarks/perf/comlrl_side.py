"""Shared parts of the `comlrl` sides: prompts, rewards and token counts.

It runs in the interpreter of the peers and imports only the work and the worker protocol of mlrl.
"""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.perf.common import Measurement, peak_rss_mib, versions
from benchmarks.perf.work import Work, revision

__all__ = ["about", "common_arguments", "measured_training"]


def common_arguments(work: Work) -> dict[str, Any]:
    """Return the arguments that all trainers of comlrl take."""
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
    """Return the work of a round: one call of `train()`.

    Args:
        trainer: A trainer whose epoch covers all tasks.
        sampler: Name of its method that returns the sampled completions.
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
    """Return facts about this side."""
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
    """Return the prompts of the next turn, as the environment gives them."""
    before = [_unchat(tokenizer, history[-1]) for history in prompt_history_per_agent]
    return [
        _chat(tokenizer, revision(prompt, answer))
        for prompt, answer in zip(before, agent_completions, strict=True)
    ]


def _unchat(tokenizer: Any, prompt: str) -> str:  # noqa: ANN401
    head, _, tail = _chat(tokenizer, "\0").partition("\0")
    return prompt.removeprefix(head).removesuffix(tail)


def _count_tokens(trainer: Any, sampler: str) -> dict[str, int]:  # noqa: ANN401
    """Count the tokens that the trainer samples, without changing it."""
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
