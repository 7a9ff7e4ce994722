"""Worker with the peer of `grpo_step`: `trl.GRPOTrainer` on its `transformers` backend.

A round is one call of `train()` with one optimizer step: all G answers of a prompt are sampled at
once, and trained in batches of eight, as users of that trainer do.
"""

import functools
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.perf.common import Measurement, peak_rss_mib, serve, versions
from benchmarks.perf.work import Work, length_reward

__all__ = ["prepare"]


def prepare(setup: dict[str, Any]) -> tuple[Callable[..., Measurement], dict[str, object]]:
    """Build the trainer of one data type; not timed."""
    import torch
    import transformers
    from trl.trainer.grpo_trainer import GRPOTrainer

    precision = setup.pop("precision")
    work = Work(**setup)
    reward: Any = _reward
    tokenizer = transformers.AutoTokenizer.from_pretrained(work.model)
    trainer = GRPOTrainer(
        model=transformers.AutoModelForCausalLM.from_pretrained(work.model, dtype=torch.float32),
        reward_funcs=reward,
        args=_arguments(work, precision),
        train_dataset=_dataset(work, tokenizer),
        processing_class=tokenizer,
    )
    answers = len(work.prompts) * work.group_size

    def step(seed: int) -> Measurement:
        torch.manual_seed(seed)
        start, cpu_start = time.perf_counter(), time.process_time()
        trainer.train()
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
        return {
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "samples": answers,
            "tokens": answers * work.max_new_tokens,
            "peak_rss_mib": peak_rss_mib(),
        }

    about = {
        "name": "trl",
        "versions": versions(["trl", "torch", "transformers"]),
        "threads": torch.get_num_threads(),
    }
    return step, about


def _arguments(work: Work, precision: str) -> Any:  # noqa: ANN401 - no types there
    from trl.trainer.grpo_config import GRPOConfig

    answers, at_once = len(work.prompts) * work.group_size, work.group_size
    return GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        max_steps=1,
        per_device_train_batch_size=at_once,
        gradient_accumulation_steps=answers // at_once,
        num_generations=work.group_size,
        max_completion_length=work.max_new_tokens,
        temperature=work.temperature,
        top_p=work.top_p,
        top_k=0,
        learning_rate=work.learning_rate,
        lr_scheduler_type="constant",
        bf16=precision == "bf16",
        gradient_checkpointing=False,
        max_grad_norm=1.0,
        shuffle_dataset=False,
        use_vllm=False,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        use_cpu=not _has_gpu(),
        disable_tqdm=True,
    )


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _dataset(work: Work, tokenizer: Any) -> Any:  # noqa: ANN401
    from datasets import Dataset

    chat = functools.partial(
        tokenizer.apply_chat_template, tokenize=False, add_generation_prompt=True
    )
    (agent,) = work.agents
    texts = [chat([{"role": "user", "content": prompt[agent]}]) for prompt in work.prompts]
    return Dataset.from_list([{"prompt": text} for text in texts])


def _reward(completions: Sequence[str], **_: object) -> list[float]:
    return [length_reward(text) for text in completions]


if __name__ == "__main__":
    serve(prepare)
