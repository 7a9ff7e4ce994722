"""Figures for a GPU: decoding against its memory's floor, an update's FLOP use, a MAGRPO step.

Models are made from a configuration with random weights, so that nothing is downloaded: weights
cost the same whatever they hold. Figures come in the order of their worth, and each is printed as
soon as it is there; what the time left does not allow is left out, and said.

- rollout tokens a second at batch 1, 32 and 256 against the floor of decoding, where each step
  reads all weights once at the bandwidth that a plain copy reaches on the same machine;
- model FLOP use of an update: 6 FLOP a weight and token of forward and backward, prompts read once
  counted once, over what a bfloat16 matrix product reaches on the same machine;
- one MAGRPO step of two models against `comlrl`, in bfloat16 on both sides.

    benchmarks/perf/gpu.sh [--seconds 520] [--device cuda]
"""

import argparse
import contextlib
import json
import platform
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.perf.common import peak_rss_mib, print_figure, spread, versions
from benchmarks.perf.work import Work

__all__ = ["ListDataset", "main", "random_model", "stand_in"]

# About 0.5B weights, in the shape of Qwen2.5-0.5B.
HALF_BILLION = {
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151_936,
}
TINY = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 300,
}
BATCHES = (1, 32, 256)
Rows = list[dict[str, object]]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what time allows, and print the figure as one JSON line."""
    arguments = _parse(argv)
    deadline = time.perf_counter() + arguments.seconds
    rows: Rows = []
    left_out: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        random_model(Path(folder), TINY if arguments.smoke else HALF_BILLION)
        parts: dict[str, tuple[float, Callable[[], Rows]]] = {
            "decoding": (80.0, lambda: _decoding(folder, arguments)),
            "update": (40.0, lambda: _update(folder, arguments)),
            "our step": (80.0, lambda: _our_step(folder, arguments)),
            "comlrl's step": (240.0, lambda: _peer_step(folder, arguments)),
        }
        for name, (seconds, measure) in parts.items():
            if time.perf_counter() + seconds > deadline:
                left_out[name] = f"needs about {seconds:.0f} s"
                continue
            found = _kept(name, measure, left_out)
            rows += found
            print(json.dumps({"part": name, "rows": found}), file=sys.stderr, flush=True)
    print_figure(
        {
            "figure": "gpu",
            "title": "GPU, models of 0.5B random weights, bfloat16",
            "work": {name: value for name, value in vars(arguments).items() if name != "smoke"},
            "rows": [*rows, *_ratio(rows)],
            "left_out": left_out,
            "versions": versions(["mlrl", "torch", "transformers", "comlrl"]),
            "hardware": _hardware(arguments.device),
        }
    )


def random_model(folder: Path, sizes: Mapping[str, int]) -> None:
    """Save a model of random weights and a tokenizer of bytes; no answer of it ever ends."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from mlrl_learners.policies.tiny import tiny_model

    _, tokenizer = tiny_model()
    # The last token is the end: random weights draw it once in a vocabulary.
    fixed: dict[str, Any] = dict(sizes)
    config = Qwen2Config(
        **fixed,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(0)
    model: Any = Qwen2ForCausalLM(config)
    model = model.to(torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _decoding(folder: str, arguments: argparse.Namespace) -> Rows:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from mlrl_learners.policies.policy import Policy
    from mlrl_learners.policies.sampling import SamplingConfig

    device, length = arguments.device, arguments.max_new_tokens
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).to(device)
    policy = Policy(model, AutoTokenizer.from_pretrained(folder))
    sampling = SamplingConfig(max_new_tokens=length)
    num_bytes = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    floor = num_bytes / _bandwidth(device)  # seconds a step
    prompt = list(range(1, 129))
    rows: Rows = []
    for batch in arguments.batches:

        def sample(batch: int = batch) -> int:
            generator = torch.Generator().manual_seed(0)
            (group,) = policy.complete(
                [prompt], batch, sampling, generator=generator, max_rows=batch
            )
            return sum(len(answer.token_ids) for answer in group)

        rates = [tokens / seconds for tokens, seconds in _timed(sample, device, rounds=2)]
        rows.append(
            {
                "what": f"sampled tokens a second, batch {batch}",
                "unit": "tokens/s",
                "ours": spread(rates),
                "peer": round(batch / floor, 1),
                "peer_name": "weights read once a step",
                "ratio": round(max(rates) * floor / batch, 3),
            }
        )
    return rows


def _update(folder: str, arguments: argparse.Namespace) -> Rows:
    import mlrl_learners
    from benchmarks.perf.update import AGENT, made_rollouts

    learner: Any = mlrl_learners.make(
        "grpo",
        agents=[AGENT],
        model=folder,
        dtype="bfloat16",
        device=arguments.device,
        skip_equal_groups=False,
        micro_batch_tokens=arguments.micro_batch_tokens,
    )
    rollouts = made_rollouts(
        prompts=8, samples=8, prompt_tokens=128, answer_tokens=arguments.max_new_tokens
    )
    weights = sum(weight.numel() for weight in learner.policies[AGENT].model.parameters())
    tokens = 8 * (128 + 8 * arguments.max_new_tokens)
    timings = _timed(lambda: learner.update(rollouts) and tokens, arguments.device, rounds=2)
    flops = [6 * weights * tokens / seconds for _, seconds in timings]
    reached = _product_flops(arguments.device)
    return [
        {
            "what": "update, FLOP a second",
            "unit": "TFLOP/s",
            "ours": spread([value / 1e12 for value in flops]),
            "peer": round(reached / 1e12, 4),
            "peer_name": "a bfloat16 product",
            "ratio": round(max(flops) / reached, 3),
        }
    ]


def _our_step(folder: str, arguments: argparse.Namespace) -> Rows:
    from benchmarks.perf.magrpo_step import AS_THE_PEER
    from benchmarks.perf.step_ours import build

    options = {
        **AS_THE_PEER,
        "dtype": "bfloat16",
        "device": arguments.device,
        "micro_batch_tokens": arguments.micro_batch_tokens,
    }
    setup = {**_work(folder, arguments).as_setup(), "learner": "magrpo", "options": options}
    _, step = build(setup)
    step(0)
    return [_step_row("ours", [step(seed)["seconds"] for seed in (1, 2)])]


def _peer_step(folder: str, arguments: argparse.Namespace) -> Rows:
    stand_in()
    from benchmarks.perf.comlrl_side import measured_training
    from benchmarks.perf.magrpo_comlrl import build

    trainer = build({**_work(folder, arguments).as_setup(), "dtype": "bfloat16"})
    step = measured_training(trainer, "_generate_completions")
    return [_step_row("comlrl", [step(0)["seconds"]])]


def _work(folder: str, arguments: argparse.Namespace) -> Work:
    text = "Tell of a lighthouse keeper who finds a message in a bottle, number {}. " * 2
    prompts = [
        {agent: text.format(task, task) for agent in ("setup", "story")}
        for task in range(arguments.tasks)
    ]
    return Work(folder, prompts, group_size=8, max_new_tokens=arguments.max_new_tokens)


def _step_row(side: str, seconds: Sequence[float]) -> dict[str, object]:
    return {"what": f"seconds a MAGRPO step, {side}", "unit": "s", "ours": spread(seconds)}


def _ratio(rows: Rows) -> Rows:
    """Return the row that sets both sides of the step beside each other, if both are there."""
    steps = {str(row["what"]).split(", ")[-1]: row["ours"] for row in rows if "MAGRPO" in str(row)}
    if set(steps) != {"ours", "comlrl"}:
        return []
    ours, peer = (_median(steps[side]) for side in ("ours", "comlrl"))
    return [
        {
            "what": "MAGRPO step, both sides",
            "unit": "s",
            "ours": ours,
            "peer": peer,
            "peer_name": "comlrl 1.4.3",
            "ratio": round(peer / ours, 2),
        }
    ]


def _median(values: Any) -> float:  # noqa: ANN401 - of a row
    return float(values["median"])


def _kept(name: str, measure: Callable[[], Rows], left_out: dict[str, str]) -> Rows:
    """Measure a part; one that fails must not cost the others."""
    try:
        return measure()
    except Exception as error:  # noqa: BLE001 - said in the figure
        left_out[name] = f"{type(error).__name__}: {error}"
        return []
    finally:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _timed(work: Callable[[], int], device: str, *, rounds: int) -> Iterator[tuple[int, float]]:
    """Yield what the work returns and its seconds, after a round that does not count."""
    for number in range(-1, rounds):
        _wait(device)
        start = time.perf_counter()
        found = work()
        _wait(device)
        if number >= 0:
            yield found, time.perf_counter() - start


def _bandwidth(device: str) -> float:
    """Return the bytes a second that a copy reads: half of what it moves."""
    numbers = torch.empty((1 << 28) if device == "cuda" else (1 << 22), device=device)
    target = torch.empty_like(numbers)
    seconds = min(
        seconds for _, seconds in _timed(lambda: len(target.copy_(numbers)), device, rounds=5)
    )
    return 2 * numbers.numel() * numbers.element_size() / seconds  # what is read, and written


def _product_flops(device: str) -> float:
    """Return the FLOP a second of a large bfloat16 matrix product."""
    size = 8192 if device == "cuda" else 256
    left = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    seconds = min(seconds for _, seconds in _timed(lambda: len(left @ left), device, rounds=5))
    return 2 * size**3 / seconds


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


class ListDataset(list[Mapping[str, object]]):
    """As much of `datasets.Dataset` as a trainer's loader asks for."""

    @classmethod
    def from_list(cls, rows: Sequence[Mapping[str, object]]) -> "ListDataset":
        """Return the rows."""
        return cls(rows)


def stand_in() -> None:
    """Let comlrl have a list of rows for `datasets` and silence for `wandb`, where these lack."""
    with contextlib.suppress(ImportError):
        import datasets  # noqa: F401
    with contextlib.suppress(ImportError):
        import wandb  # noqa: F401
    if "datasets" not in sys.modules:
        module: Any = types.ModuleType("datasets")
        module.Dataset = ListDataset
        module.IterableDataset = type("IterableDataset", (), {})
        sys.modules["datasets"] = module
    if "wandb" not in sys.modules:
        silent: Any = types.ModuleType("wandb")
        silent.run, silent.log, silent.init = None, _nothing, _nothing
        sys.modules["wandb"] = silent


def _nothing(*_: object, **__: object) -> None:
    return None


def _hardware(device: str) -> dict[str, object]:
    if device != "cuda":
        return {"processor": platform.processor(), "cores": torch.get_num_threads()}
    facts = torch.cuda.get_device_properties(0)
    return {
        "processor": facts.name,
        "cores": torch.get_num_threads(),
        "memory_gib": round(facts.total_memory / 2**30, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "peak_gpu_mib": round(torch.cuda.max_memory_allocated() / 2**20),
        "peak_rss_mib": peak_rss_mib(),
    }


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Figures for a GPU.")
    parser.add_argument("--seconds", type=float, default=520.0, help="what may be spent in all")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--max-new-tokens", type=int, default=256)
    parser.add_argument("--micro-batch-tokens", type=int, default=16_384)
    parser.add_argument("--smoke", action="store_true", help="a tiny model: does it run at all?")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
