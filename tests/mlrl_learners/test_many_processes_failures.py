"""Real runs of several processes of which one fails, is stopped or is killed."""

import pytest

from tests.mlrl_learners.launched_runs import assert_identical_runs, heard, lines, run, start

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
