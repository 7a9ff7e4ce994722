"""Runs that Ray samples: equal to one process whatever dies, and nothing left behind."""

import itertools
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from mlrl_learners.cluster.ray_session import open_ray
from mlrl_learners.cluster.ray_workers import RayPlayers, RaySamplers
from mlrl_learners.cluster.team_samplers import open_samplers
from mlrl_learners.cluster.worker_pool import WorkerPool
from mlrl_learners.cluster.workers import BatchCall, TreesCall
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


@pytest.mark.parametrize("samplers", [1, 3])  # most others have two
def test_samplers_give_the_run_of_one_process(cluster, one_process, tmp_path, samplers):
    train(tmp_path, address=cluster, samplers=samplers)
    assert_equal(one_process, tmp_path)


# Ten sequences of kills are tried in test_worker_pool, without Ray.
def test_samplers_that_are_killed_at_random_instants_change_nothing(
    cluster, one_process, tmp_path, monkeypatch
):
    draw = random.Random(0)
    due = sorted(draw.sample(range(20), 3))
    calls, answer = itertools.count(), RaySamplers.answer

    def kill_after(self, worker, call, weights):
        # A call may go to a sampler whose death is not noticed yet: the next call kills then.
        pid = pid_of(self._ray, worker) if next(calls) >= (due or [math.inf])[0] else None
        task = answer(self, worker, call, weights)
        if pid:
            time.sleep(draw.uniform(0.0, 0.1))  # in mid-call, or after it
            os.kill(pid, signal.SIGKILL)
            due.pop(0)
        return task

    monkeypatch.setattr(RaySamplers, "answer", kill_after)
    train(tmp_path, address=cluster, samplers=2)
    assert_equal(one_process, tmp_path)
    assert not due


def test_processes_that_play_give_the_run_of_one_process(cluster, one_process, tmp_path):
    train(tmp_path, address=cluster, samplers=2, rollouts=2)
    assert_equal(one_process, tmp_path)


def test_processes_that_play_and_their_samplers_are_killed_and_change_nothing(
    cluster, one_process, tmp_path, monkeypatch
):
    """The sampler of a process that is killed ends with it; then another sampler is killed."""
    killed, answer = [], RayPlayers.answer

    def kill_during(self, worker, call, weights):
        task = answer(self, worker, call, weights)
        if isinstance(call, TreesCall) and len(killed) < 2:
            kind = "_RayRolloutWorker" if not killed else "SamplerWorker"
            wait_for(lambda: titled(kind))
            time.sleep(0.2)  # in mid-call, or after it
            killed.append(titled(kind)[0])
            os.kill(killed[-1], signal.SIGKILL)
        return task

    monkeypatch.setattr(RayPlayers, "answer", kill_during)
    train(tmp_path, address=cluster, samplers=2, rollouts=2)
    assert_equal(one_process, tmp_path)
    assert len(killed) == 2
    wait_for(lambda: not titled("SamplerWorker") and not titled("_RayRolloutWorker"), seconds=60)


def test_a_sampler_that_hangs_is_replaced_and_leaves_no_process(
    cluster, one_process, tmp_path, monkeypatch
):
    stopped, calls, answer = [], itertools.count(), RaySamplers.answer

    def stop_third(self, worker, call, weights):
        if next(calls) == 3:
            stopped.append(self._ray.get(worker.ready.remote()))
            os.kill(stopped[0], signal.SIGSTOP)
        return answer(self, worker, call, weights)

    monkeypatch.setattr(RaySamplers, "answer", stop_third)
    train(tmp_path, address=cluster, samplers=2, job_seconds=30)
    assert_equal(one_process, tmp_path)
    last = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["sampler/replaced"] == 1
    wait_for(lambda: not is_running(stopped[0]), seconds=60)


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
        pool = WorkerPool(RaySamplers(ray, config, {}), config)
        with pytest.raises(SamplerError, match=r"1 prompts .* failed in 2 processes"):
            pool.answer([BatchCall("model", None, job)])
        pool.close()


def test_the_object_store_does_not_grow_with_versions(cluster):
    learner, most = make_team(), 2 * 2 + 1  # two versions of two models, and what builds them
    with open_samplers(learner, RayConfig(enabled=True, address=cluster)) as samplers:
        most += num_objects(cluster)  # left by runs of other tests, which Ray frees in its time
        for version in range(50):
            samplers.publish(version)
            samplers.pool.keep_from(version - 1)
            learner.act([{"setup": "a", "story": "b"}])
        wait_for(lambda: num_objects(cluster) <= most, seconds=30)  # Ray frees once a second


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


def num_objects(address):
    """Return the number of objects in the object store of a cluster; others may run beside it."""
    from ray._private.internal_api import memory_summary

    return int(re.search(r"(\d+) objects", memory_summary(address, stats_only=True)).group(1))


def pid_of(ray, worker):
    """Return the number of the process of a worker; None if it has ended."""
    try:
        return ray.get(worker.ready.remote())
    except ray.exceptions.RayActorError:
        return None


def titled(kind):
    """Return the processes for a class in the cluster of this process; others may run beside it."""
    found = []
    for folder in os.scandir("/proc"):
        if folder.name.isdigit():
            try:
                with open(f"{folder.path}/cmdline") as file:  # noqa: PTH123
                    if file.read().startswith(f"ray::{kind}") and is_below(int(folder.name)):
                        found.append(int(folder.name))
            except OSError:
                continue
    return found


def is_below(pid):
    """Return whether this process has started a process, or one of those above it."""
    while pid not in (0, os.getpid()):
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            pid = int(file.read().rpartition(")")[2].split()[1])
    return pid != 0


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


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
