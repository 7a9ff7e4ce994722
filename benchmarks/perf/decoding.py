"""Benchmark of sampling: tokens per second, against `generate` of the same model.

Both sides read the same prompts in one process and sample with temperature 0.8 and top-p 0.95. No
answer ends early. `generate` gets left-padded prompts with one row per answer, its fastest mode.

    python -m benchmarks.perf.decoding [--prompts 8] [--samples 4] [--max-new-tokens 64]
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from benchmarks.perf.arguments import parse_arguments
from benchmarks.perf.common import (
    Measurement,
    alternate,
    cpu_precisions,
    hardware,
    print_figure,
    spread,
    versions,
)
from benchmarks.perf.versus import check_lengths, model_folder, story_prompts
from mlrl_learners.engine import Precision, SamplingConfig
from mlrl_learners.policies import Policy
from mlrl_learners.seeding import CallSeeds

__all__ = ["main"]

Sample = Callable[[int], Measurement]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the result as one JSON line."""
    arguments = _parse(argv)
    with model_folder(smoke=arguments.smoke) as folder:
        before = hardware()
        measured: dict[str, list[Measurement]] = {}
        for precision in arguments.precisions:
            sides = _sides(folder, precision, arguments)
            measured |= alternate(sides, rounds=arguments.rounds, warmup=1)
        if not arguments.smoke:
            check_lengths(measured, arguments.max_new_tokens)
    rows = arguments.prompts * arguments.samples
    print_figure(
        {
            "figure": "decoding",
            "title": f"Sampling, SmolLM2-135M, {rows} rows, {arguments.max_new_tokens} new tokens, "
            "top-p 0.95",
            "work": {name: value for name, value in vars(arguments).items() if name != "smoke"},
            "rows": [_row(measured, precision) for precision in arguments.precisions],
            "measured": measured,
            "versions": versions(["mlrl", "torch", "transformers"]),
            "hardware": before,
        }
    )


def _sides(folder: str, precision: Precision, arguments: argparse.Namespace) -> dict[str, Sample]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    models: list[Any] = [
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32) for _ in range(2)
    ]
    ours, bare = models
    texts = [prompt["story"] for prompt in story_prompts(arguments.prompts)]
    prompts = [_prompt_ids(tokenizer, text) for text in texts]
    policy = Policy(ours, tokenizer, precision=precision)
    sampling = SamplingConfig(max_new_tokens=arguments.max_new_tokens)

    def sample(seed: int) -> int:
        seeds = CallSeeds(seed).next(len(prompts))
        answers = policy.complete(prompts, arguments.samples, sampling, seeds=seeds)
        return sum(len(answer.token_ids) for group in answers for answer in group)

    inputs = _padded(prompts, arguments.samples)

    def generate(seed: int) -> int:
        torch.manual_seed(seed)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            rows = bare.generate(
                **inputs,
                do_sample=True,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=0,
                max_new_tokens=sampling.max_new_tokens,
                min_new_tokens=sampling.max_new_tokens,
            )
        return int(rows[:, inputs["input_ids"].shape[1] :].numel())

    answers = len(prompts) * arguments.samples
    return {
        f"ours, {precision}": _timed(sample, answers),
        f"generate, {precision}": _timed(generate, answers),
    }


def _prompt_ids(tokenizer: Any, text: str) -> list[int]:  # noqa: ANN401 - transformers has no types
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
    )
    return list(tokenizer(chat, add_special_tokens=False)["input_ids"])


def _padded(prompts: Sequence[Sequence[int]], samples: int) -> dict[str, torch.Tensor]:
    width = max(map(len, prompts))
    ids = [[0] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return {
        "input_ids": torch.tensor(ids).repeat_interleave(samples, 0),
        "attention_mask": torch.tensor(mask).repeat_interleave(samples, 0),
    }


def _timed(sample: Callable[[int], int], answers: int) -> Sample:
    def work(seed: int) -> Measurement:
        start = time.perf_counter()
        tokens = sample(seed)
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "tokens": float(tokens), "samples": float(answers)}

    return work


def _row(measured: dict[str, list[Measurement]], precision: str) -> dict[str, object]:
    ours, bare = (
        spread([m["tokens"] / m["seconds"] for m in measured[f"{side}, {precision}"]])
        for side in ("ours", "generate")
    )
    return {
        "what": f"sampled tokens a second, {precision}",
        "unit": "tokens/s",
        "ours": ours,
        "peer": bare,
        "peer_name": "generate",
        "ratio": round(ours["median"] / bare["median"], 2),
    }


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    return parse_arguments(
        argv,
        "Sampling, ours against generate.",
        rounds=3,
        prompts=8,
        samples=4,
        max_new_tokens=64,
        precisions=cpu_precisions(),
        smoke=False,
    )


if __name__ == "__main__":
    main()
