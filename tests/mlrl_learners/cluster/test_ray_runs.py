"""Runs that Ray samples: equal to one process whatever dies, and nothing left behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from mlrl_learners.cluster.ray_session import open_ray
from mlrl_learners.cluster.ray_workers import RayWorkers
from mlrl_learners.cluster.sampler_pool import Call, SamplerPool
from mlrl_learners.cluster.team_samplers import open_samplers
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.engine import SamplingConfig
from mlrl_learners.engine.jobs import SamplingJob
from mlrl_learners.errors import ConfigError, SamplerError
from tests.mlrl_learners.cluster.cluster_runs import CORRECTED, assert_equal, train

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900)]


class Bomb:
    """Ends the process that reads it."""

    def __reduce__(self):
        return os._exit, (1,)


@pytest.fixture(scope="module")
def one_process(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    train(folder)
    return folder


@pytest.mark.parametrize("samplers", [1, 2, 3])
def test_samplers_give_the_run_of_one_process(cluster, one_process, tmp_path, samplers):
    train(tmp_path, address=cluster, samplers=samplers)
    assert_equal(one_process, tmp_path)


def test_samplers_that_are_killed_change_nothing(cluster, one_process, tmp_path):
    ended, killed = threading.Event(), []
    thread = threading.Thread(target=kill_now_and_then, args=(ended, killed))
    thread.start()
    try:
        train(tmp_path, address=cluster, samplers=2, max_attempts=10)
    finally:
        ended.set()
        thread.join()
    assert_equal(one_process, tmp_path)
    assert killed


def test_a_run_resumed_in_mid_lag_with_other_samplers_is_the_same(cluster, tmp_path):
    lagged = {"options": CORRECTED, "lag": 1, "address": cluster}
    train(tmp_path / "whole", iterations=4, **lagged)
    train(tmp_path / "parts", iterations=2, **lagged)
    train(tmp_path / "parts", iterations=4, samplers=2, train={"resume": True}, **lagged)
    assert_equal(tmp_path / "whole", tmp_path / "parts")


def test_a_job_that_kills_its_process_is_a_typed_error(cluster):
    config = RayConfig(enabled=True, address=cluster, max_attempts=2)
    job = SamplingJob([[Bomb()]], 1, SamplingConfig(), [0], [0], [None], (), 1, False)
    with open_ray(config) as ray:
        pool = SamplerPool(RayWorkers(ray, config, {}), config)
        with pytest.raises(SamplerError, match=r"1 prompts .* failed in 2 processes"):
            pool.sample([Call("model", None, job)])
        pool.close()


def test_the_object_store_does_not_grow_with_versions(cluster):
    from ray._private.internal_api import memory_summary

    learner = make_team()
    config = RayConfig(enabled=True, address=cluster)
    used = []
    with open_samplers(learner, config) as samplers:
        for version in range(20):
            samplers.publish(version)
            samplers.pool.keep_from(version - 1)
            learner.act([{"setup": "a", "story": "b"}])
            used.append(memory_summary(stats_only=True))
    print(used[2], used[-1])
    assert objects(used[-1]) <= objects(used[2])


def test_more_samplers_than_a_cluster_has_cores_are_refused(cluster):
    config = RayConfig(enabled=True, address=cluster, samplers=5)
    with pytest.raises(ConfigError, match=r"4 CPUs, and ray.samplers 5"), open_ray(config):
        pass


@pytest.mark.parametrize("end", ["done", "SIGKILL"])
def test_ray_that_a_run_starts_ends_with_it(tmp_path, end):
    words = [
        *("train", "story", "--learner.model", "tiny-random", "--env.reward", "paper"),
        *("--train.iterations", "2" if end == "done" else "1000", "--engine", "ray"),
        *("--train.tasks_per_iteration", "2", "--learner.sampling.max_new_tokens", "8"),
        *("--train.eval_every", "0", "--run-dir", str(tmp_path / "run")),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MARK_OF_TEST": str(tmp_path)}
    for name in ("RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        environment.pop(name, None)
    with (tmp_path / "log").open("w") as log:
        run = subprocess.Popen(
            [sys.executable, "-m", "mlrl_learners", *words], env=environment, stdout=log, stderr=log
        )
        if end == "done":
            assert run.wait(600) == 0, (tmp_path / "log").read_text()
        else:
            wait_for((tmp_path / "run/metrics.jsonl").exists)
            run.send_signal(signal.SIGKILL)
            run.wait()
    wait_for(lambda: not marked(str(tmp_path)))


def make_team():
    import mlrl_learners

    return mlrl_learners.make(
        "magrpo",
        model="tiny-random",
        agents=["setup", "story"],
        sampling={"max_new_tokens": 4},
        compute={"device": "cpu"},
    )


def objects(summary):
    """Return the number of objects in the object store from a summary of its statistics."""
    import re

    return int(re.search(r"(\d+) objects", summary).group(1))


def kill_now_and_then(ended, killed):
    """Kill a sampler of this test's run every other second."""
    while not ended.wait(2.0):
        for pid in samplers_now():
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            break


def samplers_now():
    """Return the processes that are answering a batch."""
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)  # noqa: S607
    rows = [line.split(maxsplit=1) for line in found.stdout.splitlines()[1:]]
    return [int(pid) for pid, command in rows if command.startswith("ray::SamplerWorker")]


def marked(mark):
    """Return the processes that were started with a mark in their environment."""
    found = []
    for folder in os.scandir("/proc"):
        if folder.name.isdigit():
            try:
                with open(f"{folder.path}/environ", "rb") as file:  # noqa: PTH123
                    if mark.encode() in file.read():
                        found.append(int(folder.name))
            except OSError:
                continue
    return found


def wait_for(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)
