"""Real runs of several processes on one machine; what they share is tested in test_distributed."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

TIMES = ("seconds", "time/rollout_seconds", "time/update_seconds", "time/tokens_per_second")

# Each learner of the list, one after another in the same processes: starting them is what costs.
RUN = """
import json, os, sys
import mlrl_learners

folder, jobs = sys.argv[1], json.loads(sys.argv[2])
for job in jobs:
    learner = mlrl_learners.make(
        job["learner"], model="tiny-random", agents=job.get("agents", ["setup", "story"]),
        device="cpu", **job["options"],
    )
    mlrl_learners.train(
        env_id="mlrl/story-v0", env_options={"reward": "paper", **job.get("env", {})},
        learner=learner, tasks_per_iteration=3, run_dir=folder + "/" + job["name"],
        progress=False, resume=True, **job["train"],
    )
"""
OPTIONS = {"max_new_tokens": 12, "lr": 1e-3, "micro_batch_tokens": 256}
GROUPS = {**OPTIONS, "group_size": 3}


def job(learner, name=None, *, iterations=3, train=None, **options):
    defaults = {"iterations": iterations, "eval_every": iterations, "eval_tasks": 3}
    return {
        "name": name or learner,
        "learner": learner,
        "options": options,
        "train": {**defaults, **(train or {})},
    }


JOBS = [
    job("magrpo", **GROUPS, num_minibatches=2),
    job("magrpo", "magrpo-kl", **GROUPS, kl_coef=0.1, kl_in="reward", share_weights=True),
    job("ippo", **GROUPS),
    job("ippo", "ippo-head", **GROUPS, critic="value_head", entropy_coef=0.01),
    job("mappo", **GROUPS, epochs=1),
    job("madpo", **{**GROUPS, "group_size": 6}, num_pairs=2),
    job("sft", **GROUPS),
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(folder, jobs, processes, code=RUN, **environment):
    command = [sys.executable, "-c", code, str(folder), json.dumps(jobs)]
    if processes > 1:
        script = Path(folder) / "run.py"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(code)
        command = [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)),
            *("--master-port", str(free_port()), str(script), str(folder), json.dumps(jobs)),
        ]
    return subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(folder, jobs, processes, **options):
    process = start(folder, jobs, processes, **options)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out, err


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def parameters(run_dir):
    """Every parameter of the last checkpoint, by file and name."""
    last = max((run_dir / "checkpoints").iterdir(), key=lambda path: int(path.name.split("_")[1]))
    found = {}
    for file in sorted(last.rglob("*.safetensors")):
        for name, tensor in load_file(file).items():
            found[f"{file.relative_to(last)}:{name}"] = tensor
    for file in sorted(last.rglob("value_head.pt")):
        for name, tensor in torch.load(file, weights_only=True).items():
            found[f"{file.relative_to(last)}:{name}"] = tensor
    return found


def distance(first, second):
    """Sum over all parameters of the largest difference."""
    assert first.keys() == second.keys()
    return sum(float((first[name] - second[name]).abs().max()) for name in first)


def assert_same_run(one, two):
    assert distance(parameters(one), parameters(two)) < 1e-5
    assert lines(one / "episodes.jsonl") == lines(two / "episodes.jsonl")
    for mine, theirs in zip(
        lines(one / "metrics.jsonl"), lines(two / "metrics.jsonl"), strict=True
    ):
        assert mine.keys() == theirs.keys()
        for name in mine.keys() - set(TIMES):
            assert mine[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-6), name
    for mine, theirs in zip(
        lines(one / "evaluations.jsonl"), lines(two / "evaluations.jsonl"), strict=True
    ):
        assert mine["task_returns"] == theirs["task_returns"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_processes_end_where_one_does(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    run(one, JOBS, 1)
    run(two, JOBS, 2)
    for each in JOBS:
        assert_same_run(one / each["name"], two / each["name"])
