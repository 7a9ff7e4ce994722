"""Complete runs with samplers in this process; `test_ray_runs` tests samplers of Ray."""

import json
import threading
import time

import pytest

from mlrl_learners.errors import InfraError, RunDirError
from mlrl_learners.play import growth
from mlrl_learners.training import lagged_rollouts
from tests.mlrl_learners.cluster.cluster_runs import CORRECTED, assert_equal, lines, train
from tests.mlrl_learners.cluster.inline_workers import use

LORA = {"lora": {"rank": 2}, "team": {"share_weights": False}}
FROZEN = {"team": {"frozen": ["setup"]}}
STOPS = {"sampling": {"max_new_tokens": 12, "stop": ["e", "\n"]}}


@pytest.mark.parametrize(
    "options", [{}, LORA, FROZEN, STOPS], ids=["whole", "lora", "frozen", "stop"]
)
def test_samplers_give_the_run_of_one_process(tmp_path, monkeypatch, options):
    train(tmp_path / "one", options=options, iterations=2)
    (made,) = [use(monkeypatch)]
    train(tmp_path / "samplers", options=options, iterations=2, samplers=2)
    assert_equal(tmp_path / "one", tmp_path / "samplers")
    assert len(made[0].asked) > 8
    assert sorted(set(made[0].stopped)) == [1, 2]


def test_workers_that_die_change_nothing(tmp_path, monkeypatch):
    train(tmp_path / "one", iterations=2)
    (made,) = [use(monkeypatch, lambda worker, call: "dies" if call and worker % 2 else None)]
    train(tmp_path / "samplers", iterations=2, samplers=2)
    assert_equal(tmp_path / "one", tmp_path / "samplers")
    assert len(made[0].stopped) > 2


def test_a_poisoned_episode_fails_without_a_reward(tmp_path, monkeypatch):
    poisoned = []

    def fault(worker, call):
        if call is None or call.job.seeds is None:
            return None
        poisoned[:] = poisoned or [call.job.prompts[0]]
        return "dies" if poisoned[0] in call.job.prompts else None

    use(monkeypatch, fault)
    train(tmp_path / "run", iterations=1, train={"eval_every": 0}, samplers=1, max_attempts=2)
    (failure,) = lines(tmp_path / "run/failures.jsonl")
    assert "SamplerError" in str(failure)
    assert len(lines(tmp_path / "run/episodes.jsonl")) == 2


def test_a_run_ends_if_no_worker_starts(tmp_path, monkeypatch):
    use(monkeypatch, lambda worker, call: None if call else "dies")
    with pytest.raises(InfraError, match="no sampler could be started"):
        train(tmp_path / "run", train={"eval_every": 0}, samplers=1)


@pytest.mark.parametrize("lag", [1, 2])
def test_with_lag_every_iteration_is_sampled_by_the_version_it_is_due(tmp_path, monkeypatch, lag):
    made = use(monkeypatch)
    train(tmp_path / "run", iterations=5, options=CORRECTED, train={"eval_every": 0}, lag=lag)
    asked = [version for _, version in made[0].asked]
    assert sorted(set(asked)) == list(range(5 - lag))
    ages = [line["sampler/policy_age"] for line in raw(tmp_path / "run/metrics.jsonl")]
    assert ages == [float(min(lag, number)) for number in range(5)]


def test_with_lag_iterations_are_collected_at_the_same_time_and_stepped_by_one_thread(
    tmp_path, monkeypatch
):
    together, stepping = threading.Barrier(3), threading.Lock()
    collect, step = lagged_rollouts.collect_tasks, growth.step_level

    def collect_together(plan, team, env, draw, iteration):
        if iteration <= 3:
            together.wait(60)
        return collect(plan, team, env, draw, iteration)

    def step_alone(level):
        assert stepping.acquire(blocking=False)
        time.sleep(0.01)
        stepping.release()
        return step(level)

    monkeypatch.setattr(lagged_rollouts, "collect_tasks", collect_together)
    monkeypatch.setattr(growth, "step_level", step_alone)
    use(monkeypatch)
    train(tmp_path / "run", iterations=4, options=CORRECTED, train={"eval_every": 0}, lag=2)
    assert len(lines(tmp_path / "run/metrics.jsonl")) == 4


@pytest.mark.parametrize("options", [CORRECTED, {**CORRECTED, **LORA}], ids=["whole", "lora"])
def test_a_run_resumed_in_mid_lag_is_the_same(tmp_path, monkeypatch, options):
    use(monkeypatch)
    train(tmp_path / "whole", iterations=5, options=options, lag=2)
    train(tmp_path / "parts", iterations=2, options=options, lag=2)
    with pytest.raises(RunDirError, match=r"ray.lag 2, now 1"):
        train(tmp_path / "parts", options=options, train={"resume": True}, lag=1)
    train(
        tmp_path / "parts", iterations=5, options=options, train={"resume": True}, lag=2, samplers=2
    )
    assert_equal(tmp_path / "whole", tmp_path / "parts")


def test_an_error_of_the_thread_ends_the_run(tmp_path, monkeypatch):
    def fault(worker, call):
        if call is not None and call.version == 1:
            raise ZeroDivisionError

    use(monkeypatch, fault)
    with pytest.raises(ZeroDivisionError):
        train(tmp_path / "run", iterations=4, options=CORRECTED, train={"eval_every": 0}, lag=1)


def raw(path):
    return [json.loads(line) for line in path.read_text().splitlines()]
