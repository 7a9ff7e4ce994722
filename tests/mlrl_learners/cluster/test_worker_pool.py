"""The pool with workers that only count: dealing, faults, time limits and versions."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mlrl_learners.cluster.worker_pool import WorkerPool
from mlrl_learners.cluster.workers import Answer, BatchCall, TreesCall
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.engine import SamplingConfig
from mlrl_learners.engine.jobs import SamplingJob
from mlrl_learners.errors import SamplerError
from mlrl_learners.play.groups import TreeGroup
from mlrl_learners.seeding import CallSeeds
from mlrl_learners.types import RolloutConfig
from tests.mlrl_learners.cluster.inline_workers import InlineWorkers


class Counters(InlineWorkers):
    def sample(self, call, weights):
        return Answer(call.version, 0, [call.job.prompts[0][0], weights and weights[call.key][1]])


def job(number):
    return SamplingJob([[number]], 1, SamplingConfig(), [0], [0], [None], (), 1, False)


def calls(count, version=None):
    return [BatchCall("model", version, job(number)) for number in range(count)]


def pool_of(fault=None, **options):
    workers = Counters()
    if fault is not None:
        workers.fault = fault
    return WorkerPool(workers, RayConfig(enabled=True, **options)), workers


def numbers(answers):
    return [answer.samples[0] for answer in answers]


@pytest.mark.parametrize("samplers", [1, 2, 5])
def test_answers_come_in_the_order_of_the_calls(samplers):
    pool, workers = pool_of(samplers=samplers)
    assert numbers(pool.answer(calls(7))) == list(range(7))
    assert workers.started == samplers


@pytest.mark.parametrize("fault", ["dies", "hangs"])
def test_a_lost_worker_is_replaced_and_its_batch_repeated(fault):
    faults = {1: fault}
    pool, workers = pool_of(
        lambda worker, call: faults.pop(worker, None) if call else None,
        samplers=2,
        job_seconds=0.01,
    )
    assert numbers(pool.answer(calls(5))) == list(range(5))
    assert workers.stopped == [1]
    assert (workers.started, pool.replaced) == (3, 1)


def test_a_worker_goes_on_after_an_error():
    faults = ["raises"]
    pool, workers = pool_of(lambda worker, call: faults.pop() if call and faults else None)
    assert numbers(pool.answer(calls(3))) == [0, 1, 2]
    assert workers.stopped == []


@pytest.mark.parametrize("fault", ["dies", "hangs", "raises"])
def test_a_batch_that_fails_too_often_is_a_typed_error_and_the_pool_goes_on(fault):
    poisoned = [2]

    def find(worker, call):
        return fault if call and call.job.prompts[0][0] in poisoned else None

    pool, _ = pool_of(find, samplers=2, job_seconds=0.01, max_attempts=2)
    with pytest.raises(SamplerError, match=r"1 prompts of up to 1 tokens.* failed in 2 processes"):
        pool.answer(calls(4))
    poisoned.clear()
    assert numbers(pool.answer(calls(4))) == list(range(4))


def test_workers_that_do_not_start_are_an_error_and_are_not_tried_for_ever():
    pool, workers = pool_of(lambda worker, call: None if call else "dies", max_attempts=2)
    for _ in range(2):
        with pytest.raises(SamplerError, match="no sampler could be started in 2 attempts"):
            pool.answer(calls(1))
    assert workers.started == 3


def test_weights_are_kept_by_version_until_they_are_dropped():
    pool, _ = pool_of()
    for version in range(20):
        pool.publish("model", version, f"weights {version}")
        pool.keep_from(version - 1)
        assert len(pool.versions) <= 2
    assert pool.answer(calls(1, 18))[0].samples[1] == "weights 18"
    assert pool.weights("model", 19) == "weights 19"
    with pytest.raises(SamplerError, match="version 3 are not kept"):
        pool.answer(calls(1, 3))


def test_closing_stops_every_worker_and_refuses_work():
    pool, workers = pool_of(samplers=3)
    pool.answer(calls(2))
    pool.close()
    assert sorted(workers.stopped) == [1, 2, 3]
    with pytest.raises(SamplerError, match="the run has ended"):
        pool.answer(calls(1))


@pytest.mark.parametrize("seed", range(10))
def test_random_faults_change_no_answer_whatever_the_number_of_threads(seed):
    draw = random.Random(seed)

    def fault(worker, call):
        return draw.choice(["dies", "hangs", "raises", *[None] * 6]) if call else None

    pool, workers = pool_of(fault, samplers=3, job_seconds=0.01, max_attempts=50)
    with ThreadPoolExecutor(4) as executor:
        found = list(executor.map(pool.answer, [calls(count) for count in range(1, 9)]))
    assert [numbers(each) for each in found] == [list(range(count)) for count in range(1, 9)]
    assert workers.started == 3 + pool.replaced


def test_workers_take_turns_and_several_calls_at_the_same_time():
    workers = Counters(capacity={BatchCall: 3})
    pool = WorkerPool(workers, RayConfig(enabled=True, samplers=2))
    most = []

    def count(worker, call):
        most.append(len(workers._tasks))

    workers.fault = count
    pool.answer(calls(12))  # until both have started
    del workers.asked[:]
    assert numbers(pool.answer(calls(12))) == list(range(12))
    assert [worker for worker, _ in workers.asked[:6]] == [1, 2, 1, 2, 1, 2]
    assert max(most) == 5  # beside the one that is dealt


def test_a_worker_is_replaced_once_for_all_its_calls():
    lost = []

    def fault(worker, call):
        return "dies" if call and worker == 1 else None

    workers = Counters(capacity={BatchCall: 3}, fault=fault, stopped=lost)
    pool = WorkerPool(workers, RayConfig(enabled=True, samplers=2))
    assert numbers(pool.answer(calls(12))) == list(range(12))
    assert (lost, workers.started, pool.replaced) == ([1], 3, 1)


def test_threads_share_the_workers():
    """The first call holds one of two workers until the second call has ended."""
    second_ended = threading.Event()

    class Slow(Counters):
        def wait(self, tasks, seconds):
            return super().wait(
                [each for each in tasks if second_ended.is_set() or not self.is_first(each)],
                seconds,
            )

        def is_first(self, task):
            call = self._tasks[task][1]
            return call is not None and call.job.prompts[0][0] == 100

    workers = Slow()
    pool = WorkerPool(workers, RayConfig(enabled=True, samplers=2))
    with ThreadPoolExecutor(1) as executor:
        first = executor.submit(pool.answer, [BatchCall("model", None, job(100))])
        assert numbers(pool.answer(calls(5))) == list(range(5))
        assert not first.done()
        second_ended.set()
        assert numbers(first.result(60)) == [100]


@pytest.mark.parametrize("fails", ["answer", "result"])
def test_an_error_of_another_kind_reaches_the_thread_that_asked_and_the_pool_goes_on(fails):
    class Broken(Counters):
        def answer(self, worker, call, weights):
            self.check("answer", call)
            return super().answer(worker, call, weights)

        def result(self, task):
            self.check("result", self._tasks[task][1])
            return super().result(task)

        def check(self, method, call):
            if fails == method and call is not None and call.job.prompts[0][0] == 100:
                raise ZeroDivisionError

    workers = Broken()
    pool = WorkerPool(workers, RayConfig(enabled=True))
    with ThreadPoolExecutor(4) as executor:
        sampled = [executor.submit(pool.answer, calls(20)) for _ in range(3)]
        with pytest.raises(ZeroDivisionError):
            pool.answer([BatchCall("model", None, job(number)) for number in (100, 101)])
        assert [numbers(each.result(60)) for each in sampled] == [list(range(20))] * 3
    assert workers.started == 1 + pool.replaced == 2


def trees(seed):
    return TreesCall((), 0, 0, [TreeGroup([{}], [seed], CallSeeds(0), 1)], RolloutConfig(1), "env")


class Both(Counters):
    """Answers batches, and trees by their seed."""

    def sample(self, call, weights):
        return (
            call.groups[0].seeds[0]
            if isinstance(call, TreesCall)
            else super().sample(call, weights)
        )


def test_calls_of_each_kind_have_a_capacity_of_their_own():
    workers, most = Both(capacity={BatchCall: 2, TreesCall: 1}), []
    pool = WorkerPool(workers, RayConfig(enabled=True))

    def count(worker, call):
        others = [type(each[1]) for each in workers._tasks.values()]
        most.append((type(call), others.count(type(call))))

    workers.fault = count
    found = pool.answer([*calls(6), *map(trees, range(4))])
    assert found[6:] == [0, 1, 2, 3]
    assert {(BatchCall, 1), (TreesCall, 0)} <= set(most)  # others of its kind
    assert not {(BatchCall, 2), (TreesCall, 1)} & set(most)


@pytest.mark.parametrize("fault", ["dies", "hangs"])
def test_a_call_does_not_fail_for_another_one_of_its_process(fault):
    """All calls are in one process, and one of them ends it whenever it is asked."""

    def poison(worker, call):
        return fault if call and call.groups[0].seeds[0] == 1 else None

    workers = Both(capacity={TreesCall: 3}, fault=poison, limit="rollout_seconds")
    config = RayConfig(enabled=True, rollouts=1, rollout_seconds=0.01, max_attempts=2)
    pool = WorkerPool(workers, config)
    found = pool.answer(list(map(trees, range(5))), keep_going=True)
    assert [found[number] for number in (0, 2, 3, 4)] == [0, 2, 3, 4]
    assert isinstance(found[1], SamplerError)
    assert "failed in 2 processes" in str(found[1])
    assert pool.answer([trees(7)]) == [7]  # nothing is held back


def test_an_error_is_raised_unless_the_round_goes_on():
    pool, _ = pool_of(lambda worker, call: "raises" if call and call.version == 0 else None)
    pool.publish("model", 0, "weights")
    mixed = [*calls(1, 0), *calls(1)]
    with pytest.raises(SamplerError, match="failed in 3 processes"):
        pool.answer(mixed)
    first, second = pool.answer(mixed, keep_going=True)
    assert isinstance(first, SamplerError)
    assert second.samples[0] == 0


def test_weights_are_adopted_and_dropped_by_several_threads():
    pool, _ = pool_of()

    def turn(version):
        pool.adopt(version, {f"model {version % 7}": "weights"})
        pool.keep_from(version - 20)
        return len(pool.versions)

    with ThreadPoolExecutor(8) as executor:
        assert max(executor.map(turn, range(2000))) < 60
