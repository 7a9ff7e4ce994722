"""Parts of the GPU benchmarks: decoding, an update, and a MAGRPO step of either side."""

import argparse
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.perf.common import Measurement, alternate, spread
from benchmarks.perf.gpu_machine import bandwidth, product_flops, timed, wait
from benchmarks.perf.stand_ins import stand_in
from benchmarks.perf.work import Work
from mlrl_learners.engine import SamplingConfig
from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.policies import Policy

__all__ = [
    "HALF_BILLION",
    "TINY",
    "Rows",
    "decoding",
    "our_step",
    "peer_step",
    "random_model",
    "update",
]

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
PROMPT = list(range(1, 129))
LOGIT_SPREAD = 6.0  # standard deviation of the logits
Rows = list[dict[str, object]]


def random_model(folder: Path, sizes: Mapping[str, int]) -> None:
    """Save a model with random weights and a byte tokenizer; its answers never end.

    The logits are scaled to the spread of a trained model. Without it, 95 % of the probability
    would cover 124,000 tokens, and top-p sampling would sort the vocabulary at every token.
    """
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from mlrl_learners.policies.tiny import tiny_model

    _, tokenizer = tiny_model()
    # The peer treats the first padding token of a prompt as its end (`work.padded_folder`).
    tokenizer.add_special_tokens({"pad_token": "<|pad|>"})
    # The last token ends an answer: random weights sample it with probability 1 / vocabulary.
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
    spread_now = (
        config.initializer_range * config.hidden_size**0.5
    )  # standard deviation of the logits of a unit state
    torch.nn.init.constant_(model.model.norm.weight, LOGIT_SPREAD / spread_now)
    model = model.to(torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def decoding(folder: str, batch: int, arguments: argparse.Namespace) -> Rows:
    """Measure sampled tokens per second, against the bandwidth floor and the own forward pass."""
    policy = _policy(folder, arguments.device)
    num_bytes = sum(weight.numel() * weight.element_size() for weight in policy.model.parameters())
    floor = num_bytes / bandwidth(arguments.device)  # seconds per step
    rates = _rates(policy, batch, arguments)
    return _decoding_rows(rates, f"sampled tokens a second, batch {batch}", batch / floor)


def _policy(folder: str, device: str) -> Policy:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    return Policy(model.to(device), AutoTokenizer.from_pretrained(folder))


def _rates(policy: Policy, batch: int, arguments: argparse.Namespace) -> dict[str, list[float]]:
    """Return tokens per second of the engine, and of the model's own forward pass, in alternation.

    The own forward pass reads into a cache that grows. The engine is left out without CUDA graphs.
    """
    engine, recorder, chosen = policy.engine, policy.engine.recorder, policy.engine.mode.reader
    sampling = SamplingConfig(max_new_tokens=arguments.max_new_tokens)

    def sample(graphs: GraphRecorder | None, seed: int) -> Measurement:
        if recorder is not None:
            engine.override(reader="module" if graphs is None else chosen, recorder=graphs)
        wait(arguments.device)
        start = time.perf_counter()
        (group,) = policy.complete([PROMPT], batch, sampling, seeds=[seed], max_rows=batch)
        wait(arguments.device)
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "tokens": sum(len(answer.token_ids) for answer in group)}

    ways = {"own": None} | ({} if recorder is None else {"graphs": recorder})
    sides = {name: functools.partial(sample, graphs) for name, graphs in ways.items()}
    measured = alternate(sides, rounds=2)
    if recorder is not None and not recorder.usable:
        del measured["graphs"]  # no graph was recorded
    return {name: [m["tokens"] / m["seconds"] for m in each] for name, each in measured.items()}


def _decoding_rows(rates: Mapping[str, Sequence[float]], what: str, floor: float) -> Rows:
    """Return rows against the floor and against the own forward pass, in tokens per second."""
    ours, own = rates.get("graphs", rates["own"]), rates["own"]
    row: dict[str, object] = {"what": what, "unit": "tokens/s", "ours": spread(ours)}
    rows: Rows = [
        {
            **row,
            "peer": round(floor, 1),
            "peer_name": "weights read once a step",
            "ratio": round(median(ours) / floor, 3),
        }
    ]
    if "graphs" in rates:
        rows.append(
            {
                **row,
                "what": f"{what}, against the own forward pass",
                "peer": spread(own),
                "peer_name": "the model's own forward pass",
                "ratio": round(median(ours) / median(own), 2),
            }
        )
    return rows


def update(folder: str, arguments: argparse.Namespace) -> Rows:
    """Measure the FLOP utilisation of an update."""
    import mlrl_learners
    from benchmarks.perf.update import AGENT, made_rollouts

    learner: Any = mlrl_learners.make(
        "grpo",
        agents=[AGENT],
        model=folder,
        compute={
            "dtype": "bfloat16",
            "device": arguments.device,
            "micro_batch_tokens": arguments.micro_batch_tokens,
        },
        baseline={"skip_equal_groups": False},
    )
    rollouts = made_rollouts(
        prompts=8, samples=8, prompt_tokens=128, answer_tokens=arguments.max_new_tokens
    )
    weights = sum(weight.numel() for weight in learner.policies[AGENT].model.parameters())
    tokens = 8 * (128 + 8 * arguments.max_new_tokens)
    timings = timed(lambda: learner.update(rollouts) and tokens, arguments.device, rounds=2)
    flops = [6 * weights * tokens / seconds for _, seconds in timings]
    reached = product_flops(arguments.device)
    return [
        {
            "what": "update, FLOP a second",
            "unit": "TFLOP/s",
            "ours": spread([value / 1e12 for value in flops]),
            "peer": round(reached / 1e12, 4),
            "peer_name": "a bfloat16 product",
            "ratio": round(median(flops) / reached, 3),
        }
    ]


def our_step(folder: str, arguments: argparse.Namespace) -> Rows:
    """Measure the MAGRPO step of mlrl."""
    from benchmarks.perf.magrpo_step import AS_THE_PEER
    from benchmarks.perf.step_ours import build

    options = {
        **AS_THE_PEER,
        "compute": {
            "dtype": "bfloat16",
            "device": arguments.device,
            "micro_batch_tokens": arguments.micro_batch_tokens,
        },
    }
    setup = {**_work(folder, arguments).as_setup(), "learner": "magrpo", "options": options}
    _, step = build(setup)
    return [_step_row("ours", step, arguments)]


def peer_step(folder: str, arguments: argparse.Namespace) -> Rows:
    """Measure the MAGRPO step of comlrl."""
    stand_in()
    from benchmarks.perf.comlrl_side import measured_training
    from benchmarks.perf.magrpo_comlrl import build

    trainer = build({**_work(folder, arguments).as_setup(), "dtype": "bfloat16"})
    step = measured_training(trainer, "_generate_completions")
    return [_step_row("comlrl", step, arguments)]


def _work(folder: str, arguments: argparse.Namespace) -> Work:
    text = "Tell of a lighthouse keeper who finds a message in a bottle, number {}. " * 2
    prompts = [
        {agent: text.format(task, task) for agent in ("setup", "story")}
        for task in range(arguments.tasks)
    ]
    return Work(folder, prompts, group_size=8, max_new_tokens=arguments.max_new_tokens)


def _step_row(
    side: str, step: Callable[[int], Measurement], arguments: argparse.Namespace
) -> dict[str, object]:
    """Measure one side, with as many rounds and as much warm-up as the other."""
    rounds = alternate({side: step}, rounds=arguments.rounds, warmup=arguments.warmup)[side]
    seconds = [measured["seconds"] for measured in rounds]
    return {"what": f"seconds a MAGRPO step, {side}", "unit": "s", "ours": spread(seconds)}
