import os
import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.errors import ConfigError, PeerError
from mlrl_learners.processes import work_sharing
from mlrl_learners.processes.process_group import wait_seconds
from mlrl_learners.training.train_plan import check_processes

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


@pytest.fixture
def processes(monkeypatch):
    def processes(rank, size):
        for name, number in zip(NAMES, (rank, size, rank, size), strict=True):
            monkeypatch.setenv(name, str(number))

    return processes


def test_without_a_launcher_there_is_one_process(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    assert work_sharing.world() == work_sharing.World(rank=0, size=1)
    assert work_sharing.is_main()


def test_a_launcher_says_who_is_who(processes):
    processes(1, 4)
    assert work_sharing.world() == work_sharing.World(1, 4, 1, 4)
    assert not work_sharing.is_main()


def test_one_process_gets_back_what_it_gave():
    assert work_sharing.exchange("a") == ["a"]
    assert work_sharing.gather({1: "b", 0: "a"}) == {0: "a", 1: "b"}
    assert work_sharing.share([3.0, 1.0]) == [0, 1]
    assert work_sharing.spread([1.0] * 3, lambda ours: {i: -i for i in ours}) == [0, -1, -2]
    assert work_sharing.sum_numbers({"a": 2.0})["b"] == 0.0
    assert work_sharing.gather_tensor("a tensor") == ["a tensor"]


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(2, 5))
def test_every_piece_of_work_is_exactly_one_processs(costs, size):
    parts = [_share_of(rank, size, costs) for rank in range(size)]
    assert sorted(piece for part in parts for piece in part) == list(range(len(costs)))
    loads = [sum(costs[piece] for piece in part) for part in parts]
    assert max(loads) - min(loads) <= max(costs, default=0)


def _share_of(rank, size, costs):
    with pytest.MonkeyPatch.context() as patch:
        for name, number in zip(NAMES, (rank, size, rank, size), strict=True):
            patch.setenv(name, str(number))
        return work_sharing.share(costs)


def test_an_error_in_one_process_alone_is_raised_as_it_is():
    with pytest.raises(ZeroDivisionError), work_sharing.together():
        raise ZeroDivisionError


def test_a_learner_that_cannot_share_its_work_is_refused_before_anything_is_written(processes):
    processes(0, 2)
    with pytest.raises(ConfigError, match="object learns in one process, got 2"):
        check_processes(object())


def test_a_waiting_time_that_is_no_number_is_named(monkeypatch):
    monkeypatch.setenv("MLRL_WAIT_SECONDS", "soon")
    with pytest.raises(ConfigError, match="MLRL_WAIT_SECONDS must be a number above 0, got 'soon'"):
        wait_seconds()


# Runs after what the program itself has to do at its end: nothing of torch's may be left by then.
PARTED = """
import atexit, os
from torch import distributed
atexit.register(lambda: distributed.is_initialized() and os._exit(3))
"""

MEETINGS = """
import torch
from mlrl_learners.processes import work_sharing as d

rank, size = d.world().rank, d.world().size
assert d.exchange(rank) == list(range(size))
assert d.gather({rank: rank * 10}) == {i: i * 10 for i in range(size)}
done_by = d.spread([5.0, 1.0, 1.0], lambda ours: dict.fromkeys(ours, rank))
assert done_by == [0, 1, 2]
assert d.sum_numbers({"all": 1.0, f"only {rank}": 2.0}) == {
    "all": size, **{f"only {i}": 2.0 for i in range(size)}
}
tensors = [torch.full((2,), float(rank)), torch.ones(3, dtype=torch.float64)]
d.sum_tensors(tensors)
assert tensors[0].tolist() == [3.0, 3.0] and tensors[1].tolist() == [3.0] * 3
d.broadcast(tensors := [torch.tensor([rank + 7.0])])
d.exchange(None)
columns = torch.arange(6.0).view(2, 3).T + rank  # not contiguous
assert [each.tolist() for each in d.gather_tensor(columns)] == [
    (torch.arange(6.0).view(2, 3).T + i).tolist() for i in range(size)
]
assert tensors[0].item() == 7.0
d.finish()
"""

SAME_ERROR = """
from mlrl_learners.processes import work_sharing as d
from mlrl_learners.errors import ConfigError, PeerError

try:
    with d.together(), d.together():
        raise ConfigError("a key is wrong")
except PeerError as error:
    assert d.world().rank > 0 and str(error) == "process 0: a key is wrong", error
except ConfigError:
    assert d.is_main()
"""

ONE_ERROR = """
from mlrl_learners.processes import work_sharing as d
from mlrl_learners.errors import PeerError

try:
    with d.together():
        d.exchange("hello")
        if d.world().rank == 1:
            raise OSError("no space left")
        d.exchange("on we go")
except OSError:
    assert d.world().rank == 1
except PeerError as error:
    assert d.world().rank != 1 and str(error) == "process 1: no space left", error
"""

UNHEARD = """
import time
from mlrl_learners.processes import process_group, work_sharing as d
from mlrl_learners.errors import ConfigError

process_group.LAST_MESSAGE_SECONDS = 1.0
d.start()
if d.world().rank > 0:
    time.sleep(600)
with d.together():
    raise ConfigError("a key is wrong")
"""

LATE = """
import time
from mlrl_learners.processes import work_sharing as d
from mlrl_learners.errors import PeerError

d.start()
if d.world().rank == 1:
    time.sleep(6)
else:
    try:
        d.exchange(None)
    except PeerError as error:
        assert "did not answer within 2 s (MLRL_WAIT_SECONDS)" in str(error), error
    else:
        raise AssertionError
"""


@pytest.mark.slow
@pytest.mark.parametrize("code", [MEETINGS, SAME_ERROR, ONE_ERROR, LATE])
def test_processes_meet_and_part_as_they_should(tmp_path, code):
    done = _launch(tmp_path, PARTED + code, **({"MLRL_WAIT_SECONDS": "2"} if code is LATE else {}))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_process_that_nobody_hears_ends_all_the_same(tmp_path):
    done = _launch(tmp_path, UNHEARD)
    assert done.returncode != 0
    assert "ConfigError: a key is wrong" in done.stderr


def _launch(folder, code, **environment):
    script = folder / "script.py"
    script.write_text(code)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    return subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3"),
            *("--master-port", port, str(script)),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_peer_errors_are_no_mistakes_of_the_user():
    assert not issubclass(PeerError, ConfigError)
