"""The CPU time of a trainer whose trees are played by a process."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from benchmarks.trainer_load import measure


@pytest.mark.ray
@pytest.mark.slow
def test_the_time_of_the_iterations_after_the_first_is_measured(tmp_path):
    new_process = multiprocessing.get_context("spawn")  # Ray reads its token once in a process
    with ProcessPoolExecutor(1, new_process) as pool:
        found = pool.submit(
            measure, "1 process", tasks=2, iterations=1, folder=tmp_path / "run"
        ).result()
    assert found["trees are played by"] == "1 process"
    assert 0 < found["CPU seconds of the trainer"] < found["seconds an iteration"]
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 2
