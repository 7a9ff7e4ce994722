"""Real runs of several processes on one machine; what they share is tested in processes/."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
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


def job(learner, name=None, *, iterations=3, train=None, **options):
    defaults = {"iterations": iterations, "eval_every": iterations, "eval_tasks": 3}
    return {
        "name": name or learner,
        "learner": learner,
        "options": options,
        "train": {**defaults, **(train or {})},
    }


JOBS = [
    job("magrpo", **merge_options(GROUPS, {"optimizer": {"num_minibatches": 2}})),
    job(
        "magrpo",
        "magrpo-kl",
        **merge_options(
            GROUPS,
            {"penalty": {"kl_coef": 0.1, "kl_in": "reward"}, "team": {"share_weights": True}},
        ),
    ),
    job("ippo", **GROUPS),
    job(
        "ippo",
        "ippo-head",
        **merge_options(
            GROUPS, {"critic": {"kind": "value_head"}, "penalty": {"entropy_coef": 0.01}}
        ),
    ),
    job("mappo", **merge_options(GROUPS, {"optimizer": {"epochs": 1}})),
    job(
        "ippo",
        "ippo-tokens",
        **merge_options(
            GROUPS,
            {
                "critic": {"level": "token", "normalize": True},
                "penalty": {"kl_coef": 0.1, "kl_in": "token"},
            },
        ),
    ),
    job(
        "magrpo",
        "magrpo-tasks",
        **merge_options(
            GROUPS,
            {
                "group": {"size": 2, "rollouts": 2, "resample": 2, "joint_mode": "replay"},
                "credit": {"kind": "replay"},
                "baseline": {"group_by": "agent"},
            },
        ),
    ),
    job("madpo", **CHOICES),
    job("marlhf", **GROUPS),
    job("sft", **GROUPS),
    job("magrpo", "magrpo-lora", **merge_options(GROUPS, {"lora": {"rank": 2}})),
    job("magrpo", "magrpo-half", **merge_options(GROUPS, {"compute": {"dtype": "bfloat16"}})),
]
IN_PIECES = [
    job(
        "magrpo",
        iterations=2,
        **merge_options(
            GROUPS,
            {
                "penalty": {"kl_coef": 0.1},
                "compute": {"fsdp": True},
                "team": {"share_weights": True},
            },
        ),
    ),
    job("ippo", iterations=2, **merge_options(GROUPS, {"compute": {"fsdp": True}})),
    job(
        "madpo",
        iterations=2,
        **merge_options(CHOICES, {"compute": {"fsdp": True}}),
    ),
    job(
        "marlhf",
        iterations=2,
        **merge_options(GROUPS, {"reward_model": {"epochs": 2}, "compute": {"fsdp": True}}),
    ),
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


def heard(process, seconds):
    """Return what a run says; one that takes too long, on however slow a machine, is ended."""
    try:
        return process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            process.terminate()  # the launcher ends the others


def run(folder, jobs, processes, **options):
    process = start(folder, jobs, processes, **options)
    out, err = heard(process, 800)
    assert process.returncode == 0, err
    return out, err


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def _last(run_dir):
    return max((run_dir / "checkpoints").iterdir(), key=lambda path: int(path.name.split("_")[1]))


def parameters(run_dir):
    """Every parameter of the last checkpoint, by file and name."""
    last, found = _last(run_dir), {}
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
            str(file.relative_to(_last(run_dir))): str(torch.load(file, weights_only=True))
            for file in sorted(_last(run_dir).rglob("*.pt"))
        }
    finally:
        torch.set_printoptions(profile="default")


def assert_same_run(one, two):
    """Compare runs of models in pieces, whose gradients are summed in the order of the pieces."""
    # Rewards of a model have rounding of their own; a wrong gradient moves each parameter by about
    # 1e-3, here the sum over all is near.
    assert distance(parameters(one), parameters(two)) < {"marlhf": 2e-4}.get(one.name, 1e-5)
    assert lines(one / "episodes.jsonl") == lines(two / "episodes.jsonl")
    for mine, theirs in zip(
        lines(one / "metrics.jsonl"), lines(two / "metrics.jsonl"), strict=True
    ):
        assert mine.keys() == theirs.keys()
        for name in (name for name in mine if not name.endswith(TIMES)):
            assert mine[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-6), name
    for mine, theirs in zip(
        lines(one / "evaluations.jsonl"), lines(two / "evaluations.jsonl"), strict=True
    ):
        assert mine["task_returns"] == theirs["task_returns"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_numbers_of_processes_give_the_same_bits(tmp_path):
    for number in (1, 2, 3):
        run(tmp_path / str(number), JOBS, number)
    for each in JOBS:
        for number in (2, 3):
            assert_identical_runs(
                tmp_path / "1" / each["name"], tmp_path / str(number) / each["name"]
            )


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("processes", [(2, 1), (1, 3)])
def test_a_run_is_resumed_bit_by_bit_by_another_number_of_processes(tmp_path, processes):
    jobs = {
        iterations: [
            job("ippo", iterations=iterations, train=train, **GROUPS),
            job("madpo", iterations=iterations, train=train, **CHOICES),
        ]
        for iterations, train in ((2, {"eval_every": 2}), (4, {"eval_every": 2}))
    }
    run(tmp_path / "whole", jobs[4], 1)
    for iterations, number in zip((2, 4), processes, strict=True):
        run(tmp_path / "parts", jobs[iterations], number)
    for each in jobs[4]:
        assert_identical_runs(tmp_path / "whole" / each["name"], tmp_path / "parts" / each["name"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_models_in_pieces_end_where_whole_ones_do(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    run(one, IN_PIECES, 1)
    run(two, IN_PIECES, 2)
    for each in IN_PIECES:
        assert_same_run(one / each["name"], two / each["name"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("processes", [(2, 1), (1, 2)])
def test_a_run_in_pieces_is_resumed_by_another_number_of_processes(tmp_path, processes):
    """What is saved is whole: weights and optimizer go on from it, in pieces or not."""
    train = {"eval_every": 0}
    options = merge_options(GROUPS, {"compute": {"fsdp": True}})
    run(tmp_path / "whole", [job("ippo", iterations=4, train=train, **options)], 1)
    for iterations, number in zip((2, 4), processes, strict=True):
        run(tmp_path / "two", [job("ippo", iterations=iterations, train=train, **options)], number)
    assert distance(parameters(tmp_path / "whole/ippo"), parameters(tmp_path / "two/ippo")) < 1e-5
    config = json.loads((_last(tmp_path / "two/ippo") / "learner/setup/config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_masters_of_weights_in_pieces_are_saved_whole_and_resumed_bit_by_bit(tmp_path, dtype):
    options = merge_options(
        GROUPS,
        {"compute": {"fsdp": True, "dtype": dtype}, "optimizer": {"schedule": "linear"}},
    )
    late = {"optimizer": {"total_steps": 8, "lr": 1e-5}, "baseline": {"skip_equal_groups": False}}
    options = merge_options(options, late)
    for folder, stops in (("whole", [4]), ("parts", [2, 4])):
        for iterations in stops:
            train = {"eval_every": 0, "checkpoint_every": 2}
            run(
                tmp_path / folder, [job("magrpo", iterations=iterations, train=train, **options)], 2
            )
    whole, parts = (tmp_path / folder / "magrpo" for folder in ("whole", "parts"))
    assert distance(parameters(whole), parameters(parts)) == 0
    found = [
        torch.load(_last(each) / "learner/setup/optimizer.pt", weights_only=True)["masters"]
        for each in (whole, parts)
    ]
    assert all(torch.equal(mine, found[1][number]) for number, mine in found[0].items())
    weights = {
        tuple(w.shape) for w in load_file(_last(whole) / "learner/setup/model.safetensors").values()
    }
    assert {tuple(master.shape) for master in found[0].values()} == weights
    assert {master.dtype for master in found[0].values()} == {torch.float32}


OVERFLOW = """
import os, sys
import torch
from mlrl_learners.policies.loss_scale import LossScale
from mlrl_learners.policies.optimizer import OptimizerConfig, PolicyOptimizer
from mlrl_learners.processes.work_sharing import exchange, start

start()
weight = torch.nn.Parameter(torch.ones(2, dtype=torch.float16))
optimizer = PolicyOptimizer([weight], OptimizerConfig(lr=0.1), LossScale(is_active=True))
for overflows in ((), (1,), (), (0, 1)):
    if overflows or os.environ["RANK"] == "0":
        factor = 1e9 if int(os.environ["RANK"]) in overflows else 0.5
        optimizer.backward((weight.float() * factor).sum())
    optimizer.sum_gradients()
    optimizer.step()
found = exchange((weight.tolist(), optimizer.scale.state_dict()))
assert found[0] == found[1], found
assert optimizer.scale.num_skipped == 2 and optimizer.num_steps == 2, found
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_overflow_in_one_process_skips_the_step_of_all(tmp_path):
    run(tmp_path, [], 2, code=OVERFLOW)


# One process of the run fails, by what the second argument says.
TROUBLE = """
import os, signal, sys
from pathlib import Path
from mlrl_learners.algorithms.magrpo import Magrpo
from mlrl_learners.cli import main
from mlrl_learners.errors import NumericsError

run_dir, trouble = Path(sys.argv[1]) / "run", sys.argv[2].strip('"')
update, updates = Magrpo.update, []

def troubled(self, rollouts):
    updates.append(1)
    if os.environ.get("RANK") == "1" and len(updates) == 2:
        if trouble == "numerics":
            raise NumericsError("the loss is nan")
        if trouble in ("SIGTERM", "SIGINT", "SIGKILL"):
            os.kill(os.getpid(), getattr(signal, trouble))
    return update(self, rollouts)

Magrpo.update = troubled
words = "train tiny --resume --train.iterations 4 --learner.optimizer.lr 1e-3 --run-dir".split()
sys.exit(main([*words, str(run_dir)]))
"""


def troubled(folder, trouble, processes=2):
    process = start(folder, trouble, processes, code=TROUBLE)
    out, err = heard(process, 500)
    return process.returncode, out, err


@pytest.fixture(scope="module")
def untroubled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("untroubled")
    status, _, err = troubled(folder, "none", processes=1)
    assert status == 0, err
    return folder / "run"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_an_error_in_one_process_ends_all_with_its_line(tmp_path):
    status, _, err = troubled(tmp_path, "numerics")
    assert status != 0
    assert "mlrl: iteration 2: the loss is nan; rollouts:" in err
    assert "mlrl: process 1: iteration 2: the loss is nan" in err
    assert (tmp_path / "run" / "rollouts_2.json").exists()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("trouble", "processes"), [("SIGTERM", 1), ("SIGINT", 2)])
def test_a_signal_to_one_process_ends_all_with_a_checkpoint(
    tmp_path, untroubled, trouble, processes
):
    status, out, err = troubled(tmp_path, trouble)
    assert status != 0
    assert "2 iterations" in out
    assert "to continue: mlrl train" in err
    assert (tmp_path / "run" / "checkpoints" / "step_2").exists()
    status, _, err = troubled(tmp_path, "none", processes)  # with as many, and with fewer
    assert status == 0, err
    assert_identical_runs(tmp_path / "run", untroubled)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_when_one_process_is_killed_the_others_end_and_the_run_can_go_on(tmp_path, untroubled):
    status, _, _ = troubled(tmp_path, "SIGKILL")
    assert status != 0
    status, _, err = troubled(tmp_path, "none")
    assert status == 0, err
    assert_identical_runs(tmp_path / "run", untroubled)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_only_the_first_process_writes_and_speaks(tmp_path):
    status, out, err = troubled(tmp_path, "none")
    assert status == 0, err
    assert out.count("4 iterations, last mean return") == 1
    assert [m["iteration"] for m in lines(tmp_path / "run" / "metrics.jsonl")] == [1, 2, 3, 4]
    kept = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert kept == ["step_3", "step_4"]


@pytest.mark.timeout(1200)
def test_a_mistake_is_told_once(tmp_path):
    code = "import sys; from mlrl_learners.cli import main; sys.exit(main(['train', 'tinny', "
    code += "'--run-dir', sys.argv[1]]))"
    process = start(tmp_path, [], 2, code=code)
    _, err = heard(process, 500)
    assert process.returncode != 0
    assert err.count("mlrl: ") == 1, err
