"""The simulated schedule of samplers is list scheduling, by the pool that runs use."""

import pytest

from benchmarks.cluster.clock import rollout_seconds, update_seconds
from benchmarks.cluster.schedule import main, predicted, predicted_groups, predicted_lag, row, turns


@pytest.mark.parametrize("workers", [1, 3, 7])
def test_rollouts_take_no_longer_than_the_bound_of_list_scheduling(workers):
    batches = [each[:20] for each in turns(64, seed=0)]
    found = rollout_seconds(workers, batches)
    least = sum(max(sum(each) / workers, *each) for each in batches)
    most = sum(sum(each) / workers + max(each) for each in batches)
    assert least <= found + 1e-9
    assert found <= most
    assert least <= predicted(workers, batches) <= most


def test_one_sampler_takes_the_sum_and_many_take_the_longest_batch():
    batches = [[1.0, 2.0, 3.0], [4.0]]
    assert rollout_seconds(1, batches) == pytest.approx(10.0)
    assert rollout_seconds(9, batches) == pytest.approx(7.0)


def test_a_row_counts_from_one_sampler_and_lag_is_never_slower():
    assert row(1, 64)["groups"] == 1.0
    found = row(8, 64)
    assert found["lag 1"] >= found["groups"] >= found["levels"] > 7.0


def test_a_thousand_samplers_do_what_the_design_asks_for_compared_with_one_that_works_alike():
    found = row(1000, 8, base_rows=8)
    assert found["groups"] >= 160
    assert found["lag 2"] >= 450


def test_groups_do_not_wait_for_the_longest_batch_of_each_turn():
    batches = [[1.0, 4.0], [4.0, 1.0]]
    assert rollout_seconds(2, batches) == pytest.approx(8.0)
    assert update_seconds(2, batches) == pytest.approx(5.0)
    assert update_seconds(1, batches) == pytest.approx(10.0)
    assert predicted_groups(2, batches) == pytest.approx((5.0 + 5.0 + 2.5) / 2)


@pytest.mark.parametrize(
    ("lag", "workers", "seconds"),
    [(0, 9, 4.0), (1, 9, 2.0), (3, 9, 1.0), (9, 9, 1.0), (3, 1, 3.0)],
)
def test_with_lag_the_processes_the_learner_or_the_age_of_weights_is_the_limit(
    lag, workers, seconds
):
    batches, update = [[3.0]], 1.0
    found = update_seconds(workers, batches, lag=lag, update=update)
    assert found == pytest.approx(seconds)
    assert predicted_lag(workers, batches, lag, update) == pytest.approx(seconds)


def test_the_table_has_a_row_for_each_size(capsys):
    assert main(["--workers", "1", "2", "--rows", "64"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
