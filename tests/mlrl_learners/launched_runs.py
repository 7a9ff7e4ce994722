"""Runs of one or several processes for tests: how to start them, and compare what they leave."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from mlrl_learners.config.option_places import merge_options

TIMES = ("seconds", "tokens_per_second")

# Each learner of the list, one after another in the same processes: starting them is what costs.
RUN = """
import json, os, sys
import mlrl_learners
from mlrl_learners.config.option_places import merge_options

folder, jobs = sys.argv[1], json.loads(sys.argv[2])
for job in jobs:
    learner = mlrl_learners.make(
        job["learner"], model="tiny-random", agents=job.get("agents", ["setup", "story"]),
        **merge_options({"compute": {"device": "cpu"}}, job["options"]),
    )
    if job["options"].get("compute", {}).get("fsdp") and "WORLD_SIZE" in os.environ:
        assert learner.is_sharded
        for policy in learner.policies.values():
            for weight in policy.parameters():
                assert weight.to_local().numel() <= -(-weight.numel() // 2) + weight.shape[-1]
    mlrl_learners.train(
        env_id="mlrl/story-v1", env_options={"reward": "paper", **job.get("env", {})},
        learner=learner, tasks_per_iteration=3, run_dir=folder + "/" + job["name"],
        progress=False, resume=True, **job["train"],
    )
"""
OPTIONS = {
    "sampling": {"max_new_tokens": 12},
    "optimizer": {"lr": 1e-3},
    "compute": {"micro_batch_tokens": 256, "max_rows": 4},  # numbers of batches of all kinds
}
GROUPS = merge_options(OPTIONS, {"group": {"size": 3}})
CHOICES = merge_options(OPTIONS, {"group": {"size": 6}, "preferences": {"num_pairs": 2}})


def job(learner, name=None, *, iterations=2, train=None, **options):
    """Return what `RUN` needs to train one learner; its run has the name, or the learner's."""
    defaults = {"iterations": iterations, "eval_every": iterations, "eval_tasks": 3}
    return {
        "name": name or learner,
        "learner": learner,
        "options": options,
        "train": {**defaults, **(train or {})},
    }


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(folder, jobs, processes, code=RUN, **environment):
    """Start the code in so many processes; several are started by torchrun."""
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


def heard(process, seconds):
    """Return what a run says; one that takes too long, on however slow a machine, is ended."""
    try:
        return process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            process.terminate()  # the launcher ends the others


def run(folder, jobs, processes, **options):
    """Run jobs to their end, and return what was written to stdout and stderr."""
    process = start(folder, jobs, processes, **options)
    out, err = heard(process, 800)
    assert process.returncode == 0, err
    return out, err


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def last_checkpoint(run_dir):
    return max((run_dir / "checkpoints").iterdir(), key=lambda path: int(path.name.split("_")[1]))


def parameters(run_dir):
    """Every parameter of the last checkpoint, by file and name."""
    last, found = last_checkpoint(run_dir), {}
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


def assert_identical_runs(one, two):
    mine, theirs = parameters(one), parameters(two)
    assert mine.keys() == theirs.keys()
    assert [name for name in mine if not torch.equal(mine[name], theirs[name])] == []
    assert (one / "episodes.jsonl").read_bytes() == (two / "episodes.jsonl").read_bytes()
    for file in ("metrics.jsonl", "evaluations.jsonl"):
        for mine, theirs in zip(without_times(one / file), without_times(two / file), strict=True):
            assert mine == theirs
    assert states(one) == states(two)


def without_times(path):
    return [
        {name: value for name, value in line.items() if not any(time in name for time in TIMES)}
        for line in lines(path)
    ]


def states(run_dir):
    """Every number of the optimizers and of random draws in the last checkpoint, as text."""
    torch.set_printoptions(profile="full", precision=20)
    try:
        return {
            str(file.relative_to(last_checkpoint(run_dir))): str(
                torch.load(file, weights_only=True)
            )
            for file in sorted(last_checkpoint(run_dir).rglob("*.pt"))
        }
    finally:
        torch.set_printoptions(profile="default")
