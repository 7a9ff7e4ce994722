"""Runs that are killed with SIGKILL at random instants, again and again, until they are done."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mlrl_learners.config.option_places import merge_options

ITERATIONS = 8

# Imports once and forks for every attempt: a kill shall hit the run, not the start of Python.
NURSERY = """
import json, os, random, signal, sys, time
from pathlib import Path
import transformers, mlrl_learners, mlrl_learners.cli
from mlrl_learners.algorithms import actor_critic, madpo, magrpo, sft
from mlrl_learners.config.option_places import merge_options
import mlrl_envs
from mlrl_learners.config.opponents import OpponentsConfig

folder, learner, options = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
opponents = OpponentsConfig(**options.pop("opponents", {}))
seed, num_kills, iterations = map(int, sys.argv[4:])

def train(run_dir):
    made = mlrl_learners.make(
        learner, model="tiny-random", agents=["setup", "story"],
        **merge_options({"compute": {"device": "cpu"}}, options),
    )
    mlrl_learners.train(
        env_id="mlrl/story-v1", env_options={"reward": "paper"}, learner=made,
        iterations=iterations, tasks_per_iteration=2, checkpoint_every=2, eval_every=3,
        eval_tasks=2, run_dir=run_dir, resume=True, progress=False, opponents=opponents,
    )

def attempt(run_dir, seconds=None):
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            train(run_dir)
        except BaseException:
            import traceback; traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if seconds is None and status != 0:
        sys.exit("the run failed")
    return status != 0, time.monotonic() - started

_, whole_seconds = attempt(folder / "whole")
draw, kills, tries = random.Random(seed), 0, 0
while tries < num_kills:
    tries += 1
    was_running, _ = attempt(folder / "killed", draw.uniform(0, whole_seconds / 4))
    kills += was_running
attempt(folder / "killed")
print(json.dumps({"kills": kills, "whole_seconds": whole_seconds}))
"""


def kill_again_and_again(folder, learner, options, *, seed, num_kills, iterations=ITERATIONS):
    """Train once in peace and once under fire; return how many kills hit a running process."""
    done = subprocess.run(
        [
            *(sys.executable, "-c", NURSERY, str(folder), learner, json.dumps(options)),
            *(str(seed), str(num_kills), str(iterations)),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["kills"]


def records(path):
    """Lines of a file as values, without what a clock or a program's start says."""
    found = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return [
        {key: value for key, value in record.items() if not key.endswith(("seconds", "_second"))}
        for record in found
    ]


def outcome(run_dir):
    """Everything a run leaves behind: weights, optimizers, generators, and every record."""
    last = max((run_dir / "checkpoints").iterdir(), key=lambda path: int(path.name.split("_")[1]))
    files = {
        str(file.relative_to(last)): file.read_bytes()
        for file in sorted(last.rglob("*"))
        if file.is_file()
    }
    names = ("metrics", "episodes", "evaluations", "failures")
    lines = {name: records(run_dir / f"{name}.jsonl") for name in names}
    for record in lines["evaluations"]:
        record["seconds_per_episode"] = None
    return {"last": last.name, "files": files, **lines}


GROUPS = {"group": {"size": 3}, "sampling": {"max_new_tokens": 12}, "optimizer": {"lr": 1e-2}}
POOL = {
    "agents": {"story": {"snapshots": 2, "latest": 1}},
    "snapshot_every": 1,
    "keep_snapshots": 3,
}
SCHEDULE = {"optimizer": {"schedule": "cosine", "warmup_steps": 3}}
RUNS = {
    "magrpo": ("magrpo", merge_options(GROUPS, {"optimizer": {"num_minibatches": 2}})),
    "adapters": (
        "magrpo",
        merge_options(GROUPS, {"lora": {"rank": 4}, "penalty": {"kl_coef": 0.1}}),
    ),
    "critics": ("ippo", merge_options(GROUPS, SCHEDULE)),
    "value heads": ("ippo", merge_options(GROUPS, SCHEDULE, {"critic": {"kind": "value_head"}})),
    "reward model": ("marlhf", GROUPS),
    "snapshots": (
        "magrpo",
        merge_options(GROUPS, {"team": {"share_weights": True}, "opponents": POOL}),
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("run", RUNS)
def test_a_run_that_is_killed_again_and_again_ends_bit_identical(tmp_path, run):
    kills = kill_again_and_again(tmp_path, *RUNS[run], seed=0, num_kills=10)
    assert kills >= 7
    whole, killed = outcome(tmp_path / "whole"), outcome(tmp_path / "killed")
    assert killed["files"].keys() == whole["files"].keys()
    assert killed == whole
    assert [m["iteration"] for m in killed["metrics"]] == list(range(1, ITERATIONS + 1))
    assert [e["iteration"] for e in killed["evaluations"]] == [0, 3, 6]
