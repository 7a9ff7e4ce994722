"""The CPU time of a trainer whose trees are played by a process."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from benchmarks.cluster.trainer_load import main, measure


@pytest.mark.ray
@pytest.mark.long
def test_the_time_of_the_iterations_after_the_first_is_measured(tmp_path):
    new_process = multiprocessing.get_context("spawn")  # Ray reads its token once in a process
    with ProcessPoolExecutor(1, new_process) as pool:
        found = pool.submit(
            measure, "1 process", tasks=2, iterations=1, folder=tmp_path / "run"
        ).result()
    assert found["trees are played by"] == "1 process"
    assert 0 < found["CPU seconds of the trainer"] < found["seconds an iteration"]
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("option", ["--iterations", "--tasks"])
@pytest.mark.parametrize("value", ["0", "-1"])
def test_a_number_below_one_is_refused_before_anything_is_played(option, value, capsys):
    with pytest.raises(SystemExit) as error:
        main([option, value])
    assert error.value.code == 2
    assert f"argument {option}: must be at least 1, got {value}" in capsys.readouterr().err
