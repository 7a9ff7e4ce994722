"""Benchmark of an update: trained tokens per second, against a dense forward and backward pass.

The floor is one forward and backward pass of the model over the same answers without padding: each
row is a prompt and its answer, of equal lengths, with logits of the answer tokens only and without
an optimizer. An update also computes ratios, advantages, entropy and norms, and takes an optimizer
step. It reads a prompt once for all of its answers, so that it can be faster than the floor. The
second floor uses the matrix products of mlrl instead of those of torch.

With `--added-tokens`, a second turn follows each answer: its prompt is that of the first turn and
as many tokens more.

    python -m benchmarks.perf.update [--prompts 2] [--samples 4] [--max-new-tokens 96]
        [--added-tokens 0]
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy

import mlrl_learners
from benchmarks.perf.arguments import parse_arguments
from benchmarks.perf.common import (
    Measurement,
    alternate,
    hardware,
    print_figure,
    spread,
    versions,
)
from benchmarks.perf.versus import model_folder
from mlrl_learners.types import Completion, JointStep, Node, Rollout

__all__ = ["AGENT", "made_rollouts", "main"]

AGENT = "writer"
MICRO_TOKENS = 1024  # the default of mlrl


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the result as one JSON line."""
    arguments = _parse(argv)
    before = hardware()
    with model_folder(smoke=arguments.smoke) as folder:
        rollouts = made_rollouts(
            prompts=arguments.prompts,
            samples=arguments.samples,
            prompt_tokens=arguments.prompt_tokens,
            answer_tokens=arguments.max_new_tokens,
            added_tokens=arguments.added_tokens,
        )
        sides = {
            "ours": _ours(folder, rollouts),
            "floor": _floor(folder, rollouts, fast=False),
            "floor, our products": _floor(folder, rollouts, fast=True),
        }
        measured = alternate(sides, rounds=arguments.rounds, warmup=1)
    answers = arguments.prompts * arguments.samples
    turns = f", then {answers} more after {arguments.added_tokens} more tokens"
    print_figure(
        {
            "figure": "update",
            "title": f"Update, SmolLM2-135M, float32, {answers} answers of "
            f"{arguments.max_new_tokens} tokens to {arguments.prompts} prompts of "
            f"{arguments.prompt_tokens}{turns if arguments.added_tokens else ''}",
            "work": vars(arguments),
            "rows": [_row(measured, floor) for floor in list(sides)[1:]],
            "measured": measured,
            "versions": versions(["mlrl", "torch", "transformers"]),
            "hardware": before,
        }
    )


def made_rollouts(
    *, prompts: int, samples: int, prompt_tokens: int, answer_tokens: int, added_tokens: int = 0
) -> list[Rollout]:
    """Return synthetic rollouts; the cost does not depend on the tokens.

    Args:
        prompts: Number of tasks.
        samples: Answers to each.
        prompt_tokens: Tokens of a task's prompt.
        answer_tokens: Tokens of an answer.
        added_tokens: Tokens that the prompt of a second turn adds; 0 for one turn.
    """
    draw = torch.Generator().manual_seed(0)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(20, 250, (count,), generator=draw).tolist())

    def node(turn: int, prompt: tuple[int, ...], samples: int) -> Node:
        logprobs = (-3.0,) * answer_tokens
        answers = tuple(
            Completion("", prompt, tokens(answer_tokens), logprobs) for _ in range(samples)
        )
        is_last = turn == 1 or not added_tokens
        steps = tuple(
            _step(number, None if is_last else node(1, prompt + tokens(added_tokens), 1))
            for number in range(samples)
        )
        return Node(turn, {AGENT: ""}, {AGENT: answers}, steps)

    return [
        Rollout("writers", str(task), (AGENT,), node(0, tokens(prompt_tokens), samples), 0)
        for task in range(prompts)
    ]


def _step(number: int, child: Node | None) -> JointStep:
    return JointStep(
        samples={AGENT: number},
        rewards={AGENT: float(number)},
        components={},
        infos={},
        terminated=child is None,
        truncated=False,
        child=child,
    )


def _ours(folder: str, rollouts: Sequence[Rollout]) -> Callable[[int], Measurement]:
    learner = mlrl_learners.make(
        "grpo", agents=[AGENT], model=folder, baseline={"skip_equal_groups": False}
    )
    return lambda _seed: _timed(lambda: learner.update(rollouts), rollouts)


def _floor(folder: str, rollouts: Sequence[Rollout], *, fast: bool) -> Callable[[int], Measurement]:
    from transformers import AutoModelForCausalLM

    from mlrl_learners.engine.onednn_layers import use_onednn_layers

    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.train()
    if fast:
        use_onednn_layers(model)
    turns: dict[int, list[list[int]]] = {}  # rows of equal lengths
    for answer in _answers(rollouts):
        row = [*answer.prompt_ids, *answer.token_ids]
        turns.setdefault(len(row), []).append(row)
        width = len(answer.token_ids)

    def work() -> None:
        model.zero_grad()
        for length, ids in turns.items():
            for rows in torch.tensor(ids).split(max(1, MICRO_TOKENS // length)):
                logits = model(rows[:, :-1], use_cache=False, logits_to_keep=width).logits
                cross_entropy(logits.flatten(0, 1), rows[:, -width:].flatten()).backward()

    return lambda _seed: _timed(work, rollouts)


def _timed(work: Callable[[], object], rollouts: Sequence[Rollout]) -> Measurement:
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    tokens = sum(len(answer.token_ids) for answer in _answers(rollouts))
    return {"seconds": seconds, "tokens": float(tokens)}


def _answers(rollouts: Sequence[Rollout]) -> list[Completion]:
    nodes = [node for rollout in rollouts for node in rollout.root.walk()]
    return [answer for node in nodes for answer in node.completions[AGENT]]


def _row(measured: dict[str, list[Measurement]], floor: str) -> dict[str, object]:
    ours, least = (
        spread([m["tokens"] / m["seconds"] for m in measured[side]]) for side in ("ours", floor)
    )
    return {
        "what": f"trained tokens a second, against the {floor}",
        "unit": "tokens/s",
        "ours": ours,
        "peer": least,
        "peer_name": floor,
        "ratio": round(ours["median"] / least["median"], 2),
    }


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    return parse_arguments(
        argv,
        "An update, against the floor.",
        rounds=3,
        prompts=2,
        samples=4,
        prompt_tokens=96,
        max_new_tokens=96,
        added_tokens=0,
        smoke=False,
    )


if __name__ == "__main__":
    main()
