import json

import pytest

from mlrl_learners.monitor.metrics_table import MetricsTable


def values(table, name):
    return table.curves().columns[name].tolist()


def test_curves_grow_with_the_file(run):
    table = MetricsTable("first", run.path)
    run.train(1, 0.1)
    assert values(table, "train/return") == [0.1]
    run.train(2, 0.2, **{"aux/loss": 3.0})
    assert values(table, "train/return") == [0.1, 0.2]
    assert values(table, "aux/loss")[1] == 3.0
    assert values(table, "aux/loss")[0] != values(table, "aux/loss")[0]  # NaN: it has none there


def test_a_run_that_goes_back_is_read_anew(run):
    table = MetricsTable("first", run.path)
    for iteration in (1, 2, 3):
        run.train(iteration, iteration / 10)
    assert values(table, "iteration") == [1, 2, 3]
    run.rewrite("metrics.jsonl", [{"iteration": 1, "train/return": 0.1}])
    run.train(2, 0.9)
    assert values(table, "train/return") == [0.1, 0.9]


def test_an_iteration_written_twice_counts_once(run):
    for reward in (0.1, 0.9):
        run.train(1, reward)
    assert values(MetricsTable("first", run.path), "train/return") == [0.9]


def test_evaluations_of_the_environment_looked_at_most_are_drawn(run):
    for iteration, env_id in ((0, "a"), (0, "b"), (3, "a")):
        row = {"iteration": iteration, "env_id": env_id, "split": "eval", "mean_return": 0.5,
               "interval": [0.4, 0.6], "episodes": [{"task_id": ', "episodes": ['}]}  # fmt: skip
        run.append("evaluations.jsonl", row)
    held = MetricsTable("first", run.path).curves().held_out
    assert [(one.iteration, one.low, one.high) for one in held] == [(0, 0.4, 0.6), (3, 0.4, 0.6)]


@pytest.mark.parametrize("line", ["nonsense", "[]", "null", '{"iteration": "x"}', '{"a": NaN}'])
def test_lines_of_another_shape_are_passed_over(run, line):
    run.train(1, 0.1)
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        with (run.path / name).open("a") as file:
            file.write(line + "\n")
    run.train(2, 0.2)
    assert values(MetricsTable("first", run.path), "train/return") == [0.1, 0.2]


def test_the_last_row_is_had_without_the_others(run):
    for iteration in range(500):
        run.train(iteration, 0.5)
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"iteration": 500})[:-3])
    assert MetricsTable("first", run.path).last_row().iteration == 499
