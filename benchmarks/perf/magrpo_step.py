"""Figure (a): one MAGRPO step of SmolLM2-135M, ours against `comlrl`'s `MAGRPOTrainer`.

A step is what both sides call one: sample G answers an agent for every task, score them, compute
group-relative advantages, one forward and backward of every sample, one AdamW step an agent. Two
agents as two models, the story task's own prompts in the model's chat template, the same sampling
settings, and a length that never varies: both sides load a folder whose end-of-sequence is a
token the model never writes, so every sample has exactly `max_new_tokens` tokens.

    python -m benchmarks.perf.magrpo_step [--rounds 3] [--tasks 4] [--max-new-tokens 96]
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.perf.common import (
    Measurement,
    Worker,
    alternate,
    hardware,
    peers_python,
    print_figure,
    spread,
)

__all__ = ["main"]

AGENTS = ("setup", "story")
END, PAD = "<jupyter_script>", "<empty_output>"  # tokens 15 and 16, which no answer holds


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the figure as one JSON line."""
    arguments = _parse(argv)
    work = {
        "agents": list(AGENTS),
        "group_size": arguments.group_size,
        "max_new_tokens": arguments.max_new_tokens,
        "temperature": 0.8,
        "top_p": 0.95,
        "learning_rate": 5e-6,
        "normalize": False,
        "prompts": story_prompts(arguments.tasks),
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        setup = {**work, "model": str(endless_model(Path(folder)))}
        ours = Worker(
            sys.executable,
            "benchmarks.perf.magrpo_ours",
            {**setup, "precision": arguments.precision},
        )
        stack.enter_context(ours)
        peer = Worker(
            peers_python(), "benchmarks.perf.magrpo_comlrl", {**setup, "dtype": "float32"}
        )
        stack.enter_context(peer)
        before = hardware()
        measured = alternate(
            {"ours": ours.round, "comlrl": peer.round}, rounds=arguments.rounds, warmup=1
        )
    print_figure(
        {
            "figure": "magrpo_step",
            "title": title(arguments),
            "work": {
                **{name: value for name, value in work.items() if name != "prompts"},
                "model": "SmolLM2-135M-Instruct",
                "tasks": arguments.tasks,
                "dtype": {"ours": arguments.precision, "comlrl": "float32"},
            },
            "rows": rows(measured),
            "measured": measured,
            "versions": {"ours": ours.about, "comlrl": peer.about},
            "hardware": before,
        }
    )


def title(arguments: argparse.Namespace) -> str:
    """Say what the work is, for the table."""
    return (
        f"MAGRPO step, SmolLM2-135M, 2 agents, {arguments.tasks} tasks, G {arguments.group_size}, "
        f"{arguments.max_new_tokens} new tokens, {arguments.precision}"
    )


def rows(measured: Mapping[str, Sequence[Measurement]]) -> list[dict[str, object]]:
    """Return the rows of the table: medians of both sides and their ratio."""
    seconds = {side: spread([m["seconds"] for m in measured[side]]) for side in measured}
    rates = {
        side: spread([m["tokens"] / m["seconds"] for m in measured[side]]) for side in measured
    }
    cpu = {side: spread([m["cpu_seconds"] for m in measured[side]]) for side in measured}
    memory = {side: spread([m["peak_rss_mib"] for m in measured[side]]) for side in measured}
    return [
        _row("seconds a step", "s", seconds, smaller_is_better=True),
        _row("sampled tokens a second, whole step", "tokens/s", rates, smaller_is_better=False),
        _row("CPU seconds a step, both cores", "s", cpu, smaller_is_better=True),
        _row("peak resident memory", "MiB", memory, smaller_is_better=True),
    ]


def _row(
    what: str, unit: str, sides: Mapping[str, Mapping[str, float]], *, smaller_is_better: bool
) -> dict[str, object]:
    ours, peer = sides["ours"]["median"], sides["comlrl"]["median"]
    ratio = peer / ours if smaller_is_better else ours / peer
    return {
        "what": what,
        "unit": unit,
        "ours": sides["ours"],
        "peer": sides["comlrl"],
        "peer_name": "comlrl 1.4.3",
        "ratio": round(ratio, 2),
    }


def story_prompts(count: int) -> list[dict[str, str]]:
    """Return what each agent reads in the first tasks of the story environment."""
    import mlrl_envs

    env = mlrl_envs.make("mlrl/story-v0", split="all")
    prompts = []
    for index in range(count):
        observations, _ = env.reset(seed=0, options={"task_index": index})
        prompts.append(dict(observations))
    env.close()
    return prompts


def endless_model(target: Path) -> Path:
    """Make a folder that shares SmolLM2's weights and whose end-of-sequence is never written."""
    from mlrl_learners.policies.smollm2 import smollm2_folder

    for path in smollm2_folder().iterdir():
        (target / path.name).symlink_to(path)
    ids = {"eos_token_id": 15, "pad_token_id": 16}
    _edit(target / "config.json", ids)
    _edit(target / "generation_config.json", ids)
    _edit(target / "tokenizer_config.json", {"eos_token": END, "pad_token": PAD})
    return target


def _edit(path: Path, changes: Mapping[str, object]) -> None:
    content = {**json.loads(path.read_text()), **changes}
    path.unlink()  # a link to the cached file, which stays as it is
    path.write_text(json.dumps(content))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="One MAGRPO step, ours against comlrl.")
    parser.add_argument("--rounds", type=int, default=3, help="measured turns a side")
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--group-size", type=int, default=4)
    parser.add_argument("--max-new-tokens", type=int, default=96)
    parser.add_argument(
        "--precision", choices=("float32", "bf16"), default="float32", help="of our side"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
