"""Synthetic run directory of any size: two coders, trees of two turns, no model."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["append_iteration", "write_run"]

AGENTS = ("aux", "main")
TASKS = 164
_GROUP = 4
_WORDS = ("numbers", "values", "index", "total", "pairs", "result", "stack", "left", "limit")


def write_run(run_dir: Path, *, episodes: int, per_iteration: int = 20, seed: int = 0) -> None:
    """Write a run with episodes of about ten thousand characters each.

    Args:
        run_dir: Folder to create; must not exist.
        episodes: Number of lines in `episodes.jsonl`.
        per_iteration: Episodes per iteration.
        seed: Random seed.
    """
    run_dir.mkdir(parents=True)
    iterations = -(-episodes // per_iteration)
    config = f"env:\n  id: mlrl/humaneval-v1\ntrain:\n  iterations: {iterations}\n"
    (run_dir / "config.yaml").write_text(config)
    for iteration in range(1, iterations + 1):
        size = min(per_iteration, episodes - (iteration - 1) * per_iteration)
        append_iteration(run_dir, iteration, iterations, size, seed=seed)


def append_iteration(run_dir: Path, iteration: int, of: int, size: int, *, seed: int = 0) -> None:
    """Append the files of one training iteration."""
    draw = random.Random(seed * 1_000_003 + iteration)  # noqa: S311 - nothing secret
    skill = 0.2 + 0.6 * iteration / of
    with (run_dir / "episodes.jsonl").open("a") as file:
        for number in range(size):
            rollout = _rollout(draw, skill)
            file.write(json.dumps({"iteration": iteration, "rollout": number, **rollout}) + "\n")
    with (run_dir / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"iteration": iteration, **_metrics(draw, skill, iteration)}) + "\n")


def _metrics(draw: random.Random, skill: float, iteration: int) -> dict[str, float]:
    noisy = skill + draw.gauss(0, 0.05)
    metrics = {
        "seconds": 20 + draw.random(),
        "train/return": 2 * noisy,
        "train/return_std": 0.4,
        "train/solved_rate": max(0.0, noisy - 0.2),
        "train/turns": 2 - noisy / 2,
        "train/reward/tests": noisy,
        "train/reward/cooperation": noisy / 2,
        "train/failed_episodes": 0.0,
        "train/tokens": 9000 + 500 * draw.random(),
        "time/rollout_seconds": 12.0,
        "time/update_seconds": 8.0,
        "time/tokens_per_second": 450 + 20 * draw.random(),
    }
    for agent in AGENTS:
        metrics |= {
            f"{agent}/loss": draw.gauss(0, 0.1),
            f"{agent}/kl": 0.001 + 0.0001 * draw.random(),
            f"{agent}/entropy": 1.5 - skill + draw.gauss(0, 0.03),
            f"{agent}/grad_norm": 0.3 + 0.1 * draw.random(),
            f"{agent}/completion_tokens": 90 - 30 * skill + draw.gauss(0, 3),
            f"{agent}/truncated_rate": max(0.0, 0.5 - skill),
            f"{agent}/lr": 1e-5 * min(1.0, iteration / 20),
        }
    return metrics


def _rollout(draw: random.Random, skill: float) -> dict[str, Any]:
    task = draw.randrange(TASKS)
    return {
        "env_id": "mlrl/humaneval-v1",
        "task_id": f"HumanEval/{task}",
        "seed": draw.randrange(2**31),
        "agents": list(AGENTS),
        "node": _node(draw, skill, task, turn=0),
    }


def _node(draw: random.Random, skill: float, task: int, *, turn: int) -> dict[str, Any]:
    return {
        "turn": turn,
        "observations": {agent: _observation(agent, task, turn) for agent in AGENTS},
        "completions": {
            agent: [_completion(draw, agent) for _ in range(_GROUP)] for agent in AGENTS
        },
        "steps": [_step(draw, skill, task, turn, sample) for sample in range(_GROUP)],
    }


def _step(draw: random.Random, skill: float, task: int, turn: int, sample: int) -> dict[str, Any]:
    solved = draw.random() < skill
    parts = {"tests": 1.0 if solved else round(draw.random() / 2, 3), "cooperation": skill / 2}
    checks = [
        {"name": "syntax", "passed": True, "status": "right", "details": []},
        {
            "name": "public tests",
            "passed": solved,
            "status": "all of 2 passed" if solved else "1 of 2 passed",
            "details": [] if solved else ["assert f([1, 2]) == 3  # AssertionError"],
        },
    ]
    goes_on = turn == 0 and not solved
    return {
        "samples": dict.fromkeys(AGENTS, sample),
        "rewards": dict.fromkeys(AGENTS, sum(parts.values())),
        "components": dict.fromkeys(AGENTS, parts),
        "solved": solved,
        "diagnostics": {agent: {"checks": checks} for agent in AGENTS},
        "terminated": solved,
        "truncated": turn == 1 and not solved,
        "child": _node(draw, skill, task, turn=1) if goes_on and sample == 0 else None,
    }


def _observation(agent: str, task: int, turn: int) -> str:
    heads = f"Python problem {task}:\n\n```python\ndef f{task}(numbers: list[int]) -> int:\n"
    docs = '    """ Return what the numbers come to.\n    >>> f([1, 2])\n    3\n    """\n```\n\n'
    role = f"You are {agent}, one of 2 programmers who solve this problem together.\n"
    before = "\nYour last answer did not pass: 1 of 2 public tests.\n" if turn else ""
    return heads + docs + role + before


def _completion(draw: random.Random, agent: str) -> dict[str, Any]:
    return {"text": "\n".join(_program(draw, agent)), "tokens": 96, "finish_reason": "stop"}


def _program(draw: random.Random, agent: str) -> Iterator[str]:
    yield f"```python\ndef {agent}(numbers):"
    yield f'    """Keep {draw.choice(_WORDS)} of the {draw.choice(_WORDS)}."""'
    for _ in range(draw.randrange(4, 12)):
        left, right = draw.choice(_WORDS), draw.choice(_WORDS)
        yield f"    {left} = [{right} for {right} in numbers if {right} > {draw.randrange(99)}]"
    yield f"    return len({left})\n```\nThat is all I have to say about {right}."
