"""Runs of teams in a folder: which are read, compared, published and trained again."""

import dataclasses
import json

import pytest

import mlrl_learners
from benchmarks.shared.kept_runs import keep_same
from benchmarks.teams import __main__ as command
from benchmarks.teams import ablations, comparisons, plans, published, results, tasks, training
from mlrl_learners.config.run import to_mapping
from mlrl_learners.config.yaml import dump_yaml
from mlrl_learners.errors import NumericsError, RunDirError
from tests.benchmarks.teams.test_teams import TINY


def runs_of(method, gap):
    return [
        {
            "task": "network", "method": method, "seed": seed, "tokens": 1000, "minutes": 2.0,
            "held_out": {"0": 0.25, "60": 0.5 + gap}, "returns": [0.25 + gap, 0.75 + gap] * 20,
        }
        for seed in (0, 1)
    ]  # fmt: skip


def test_differences_are_paired_over_tasks_and_seeds():
    table = results.comparison_table([*runs_of("ippo", 0.1), *runs_of("ppo", 0.0)])
    row = table.splitlines()[-1]
    assert row.startswith("| network | `ippo`, `ppo` | 0.60 | 0.50 | +0.10 ± 0.00 | +0.10, +0.10 |")
    assert "| [+0.10, +0.10] | 0.000" in row
    assert row.endswith("| 1.00 | +0.10 ± 0.00 |")
    assert len(results.comparison_table(runs_of("ippo", 0.1)).splitlines()) == 2


def test_seeds_that_disagree_widen_the_interval_over_seeds_and_not_the_one_over_tasks():
    ours = [runs_of("ippo", gap)[seed] for seed, gap in enumerate((0.0, 0.2))]
    found = comparisons.compare([*ours, *runs_of("ppo", 0.0)], "network", "ippo", "ppo")
    assert found.over_seeds == "+0.10 ± 1.27"
    assert found.over_tasks == "[+0.10, +0.10]"


def test_at_equal_time_the_slower_method_has_done_a_part_of_its_updates():
    fast, slow = runs_of("ippo", 0.1), runs_of("ppo", 0.3)
    for number, each in enumerate(slow):
        each["minutes"] = 4.0 + number  # the second run shared the machine
    found = comparisons.at_equal_time([*fast, *slow], "network", "ippo", "ppo")
    assert found == pytest.approx([0.6 - (0.25 + 0.8) / 2] * 2)
    reverse = comparisons.at_equal_time([*fast, *slow], "network", "ppo", "ippo")
    assert reverse == pytest.approx([-gap for gap in found])


def test_runs_of_seconds_are_compared_at_equal_time():
    runs = [{**each, "minutes": 0.0} for each in (*runs_of("ippo", 0.1), *runs_of("ppo", 0.0))]
    assert comparisons.at_equal_time(runs, "network", "ippo", "ppo") == pytest.approx([0.1] * 2)


def test_a_change_is_relative_to_imitation():
    table = results.learning_table(runs_of("ippo", 0.1))
    assert "| 2 | 0.25 → 0.60 | +0.35 ± 0.00 | 0.60, 0.60 | 1,000 | 2.0 |" in table


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ({"magrpo": 0.1, "one-magrpo": 0.0}, "| **+0.10 ± 0.00** |  |  | the team |"),
        ({"ippo": 0.0, "ppo": 0.1}, "|  |  | **-0.10 ± 0.00** | one agent |"),
        ({"magrpo": 0.1, "one-magrpo": 0.1}, "| +0.00 ± 0.00 |  |  | not shown |"),
        (
            {"magrpo": 0.2, "one-magrpo": 0.1, "ippo": 0.0, "ppo": 0.1},
            "| **+0.10 ± 0.00** |  | **-0.10 ± 0.00** | depends on the method |",
        ),
    ],
)
def test_a_task_is_decided_by_the_pairs_whose_intervals_over_seeds_exclude_zero(gaps, verdict):
    runs = [run for method, gap in gaps.items() for run in runs_of(method, gap)]
    assert results.verdict_table(runs).splitlines()[-1] == f"| network {verdict}"


def test_one_seed_decides_nothing():
    runs = [runs_of("magrpo", 0.1)[0], runs_of("one-magrpo", 0.0)[0]]
    assert results.verdict_table(runs).endswith("| network | +0.10 |  |  | not shown |")
    assert len(results.verdict_table(runs_of("magrpo", 0.1)).splitlines()) == 2


def test_the_page_has_the_tables_of_the_stored_runs():
    stored = json.loads(command.RESULTS.read_text("utf-8"))
    page = command.PAGE.read_text("utf-8")
    assert results.scripts_table(stored["references"]) in page
    assert results.learning_table(stored["runs"]) in page
    assert results.comparison_table(stored["runs"]) in page
    assert results.verdict_table(stored["runs"]) in command.SUMMARY.read_text("utf-8")


def test_later_runs_are_added_to_the_published_ones(tmp_path, monkeypatch):
    file, names = tmp_path / "results.json", plans.METHODS
    first, later = runs_of("magrpo", 0.0), [*runs_of("ippo", 0.1), runs_of("magrpo", 0.2)[1]]
    assert published.published_with(first, file, names) == first
    published.write_published(first, file, names)
    both = published.published_with(later, file, names)
    assert both == [first[0], later[2], *later[:2]]
    monkeypatch.setattr(published, "TASKS", TINY)  # the task is learnt in another way
    assert published.outdated(file, names) == ["network"]
    assert published.published_with(later[:2], file, names) == later[:2]


def test_runs_of_a_method_that_is_defined_in_another_way_or_gone_are_dropped(tmp_path):
    file, methods = tmp_path / "ablations.json", dict(ablations.ALL)
    runs = [*runs_of("magrpo", 0.0), *runs_of("chain", 0.1), *runs_of("lag-1", 0.1)]
    published.write_published(runs, file, methods)
    assert published.published_with([], file, methods) == runs
    methods["chain"] = dataclasses.replace(methods["chain"], label="another word")
    assert published.outdated(file, methods) == []
    methods["chain"] = methods["lag-1"]
    del methods["lag-1"]
    assert published.outdated(file, methods) == ["chain", "lag-1"]
    assert published.published_with([], file, methods) == runs[:2]


def test_the_stored_runs_stay_if_a_folder_has_none_of_them():
    for module, methods in ((command, plans.METHODS), (ablations, ablations.ALL)):
        stored = json.loads(module.RESULTS.read_text("utf-8"))
        runs = published.published_with([], module.RESULTS, methods)
        assert sorted(runs, key=str) == sorted(stored["runs"], key=str)


def job(name="ippo", seed=0):
    return training.Job("network", name, plans.METHODS[name], seed)


def write_run(runs, name="ippo", returns=(0.5,) * TINY["network"].eval_tasks, **changed):
    """Write what a finished run leaves."""
    folder, task = training.run_folder(runs, name, 0), TINY["network"]
    folder.mkdir(parents=True)
    config = plans.run_config(task, plans.METHODS[name], "a model", 0)
    config = dataclasses.replace(config, learner=dataclasses.replace(config.learner, **changed))
    (folder / "config.yaml").write_text(dump_yaml(json.loads(json.dumps(to_mapping(config)))))
    found = {"iteration": task.updates, "mean_return": 0.5}
    found["task_returns"] = {str(number): [each] for number, each in enumerate(returns)}
    (folder / "evaluations.jsonl").write_text(json.dumps(found) + "\n")
    metrics = {"train/tokens": 8.0, "seconds": 30.0, "train/failed_episodes": 1.0}
    (folder / "metrics.jsonl").write_text(json.dumps(metrics) + "\n")


def test_a_finished_run_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "TASKS", TINY)
    write_run(tmp_path)
    found = results.read_run(job(), tmp_path)
    assert (found["tokens"], found["minutes"], found["failed_episodes"]) == (8, 0.5, 1)


@pytest.mark.parametrize(
    ("left", "reason"),
    [
        (None, "not finished"),
        ({"returns": (0.5,)}, "tasks have no return"),
        ({"name": "ippo", "options": {"gamma": 0.5}}, "another configuration"),
    ],
)
def test_a_run_that_cannot_be_compared_is_left_out_with_the_reason(
    left, reason, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(results, "TASKS", TINY)
    if left is not None:
        write_run(tmp_path / "network", **left)
    assert results.gather([job()], tmp_path) == []
    said = capsys.readouterr().out
    assert said.startswith("left out: network, ippo, seed 0: ")
    assert reason in said


def test_a_run_that_fails_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    trained = []

    def train(task, method, name, seed, runs):
        if seed == 1:
            raise NumericsError("the loss is nan")
        trained.append(seed)
        return True

    monkeypatch.setattr(training, "train", train)
    assert training.train_all([job(seed=seed) for seed in range(3)], tmp_path) == 1
    assert trained == [0, 2]
    assert "network, ippo, seed 1: NumericsError: the loss is nan" in capsys.readouterr().err


def test_play_that_was_made_in_another_way_is_not_used_again(tmp_path):
    for _ in range(2):
        keep_same(tmp_path / "made.json", {"games": 8, "scripts": ("random",)})
    with pytest.raises(RunDirError, match="made in another way"):
        keep_same(tmp_path / "made.json", {"games": 9, "scripts": ("random",)})


@pytest.mark.parametrize("name", tasks.TASKS)
@pytest.mark.parametrize("change", ablations.CHANGES)
def test_a_change_is_a_configuration_at_as_many_episodes(change, name):
    changed, base = (
        plans.run_config(tasks.TASKS[name], method, "m", 0)
        for method in (ablations.CHANGES[change], plans.METHODS[ablations.BASE])
    )
    assert changed != base
    assert changed.train == base.train
    groups = [config.learner.options["group"] for config in (changed, base)]
    assert len({group["size"] * group["rollouts"] for group in groups}) == 1


@pytest.mark.parametrize("change", ablations.CHANGES)
def test_the_options_of_a_change_are_accepted(change):
    options = plans.run_config(tasks.TASKS["puzzle"], ablations.CHANGES[change], "m", 0).learner
    mlrl_learners.make("magrpo", agents=["a", "b"], model="tiny-random", **options.options)


def test_changes_are_compared_with_the_base_seed_by_seed():
    runs = [*runs_of("magrpo", 0.0), *runs_of("lag-1", 0.1), runs_of("chain", 0.2)[0]]
    lag, chain = ablations.ablation_table(runs).splitlines()[-1:1:-1]
    assert lag.startswith(f"| network | {ablations.CHANGES['lag-1'].label} | 0.50 | 0.60 ")
    assert "| +0.10 ± 0.00 | +0.10, +0.10 | [+0.10, +0.10] | 0.000" in lag
    assert "| 0.50 | 0.70 | +0.20 | +0.20 |" in chain


@pytest.mark.slow
def test_an_ablation_is_trained_once_and_published(tmp_path, monkeypatch, capsys):
    for module in (ablations, results, training):
        monkeypatch.setattr(module, "TASKS", TINY)
    page = tmp_path / "results.md"
    page.write_text("a\n<!-- ablations: begin -->\n<!-- ablations: end -->\nb\n", "utf-8")
    monkeypatch.setattr(ablations, "PAGE", page)
    monkeypatch.setattr(ablations, "RESULTS", tmp_path / "ablations.json")
    words = ["--runs", str(tmp_path), "--seeds", "0", "--tasks", "network", "--publish"]
    assert ablations.main([*words, "--changes", "chain", "own-weights"]) == 0
    first = capsys.readouterr().out
    assert first.count("| network | ") == 2
    assert first.strip() in page.read_text("utf-8")
    monkeypatch.setattr("mlrl_learners.cli.train.train_config", None)  # nothing is trained again
    assert ablations.main([*words, "--changes", "chain", "own-weights"]) == 0
    assert capsys.readouterr().out == first


@pytest.mark.slow
def test_runs_are_trained_once_and_reported(tmp_path, monkeypatch, capsys):
    for module in (command, results, training):
        monkeypatch.setattr(module, "TASKS", TINY)
    words = ["--runs", str(tmp_path), "--seeds", "0", "--tasks", "network"]
    assert command.main([*words, "--methods", "ippo", "ppo", "magrpo", "grpo"]) == 0
    first = capsys.readouterr().out
    for pair in ("`ippo`, `ppo`", "`magrpo`, `grpo`"):
        assert first.count(f"| network | {pair} |") == 1
    monkeypatch.setattr("mlrl_learners.cli.train.train_config", None)  # nothing is trained again
    assert command.main([*words, "--methods", "ippo", "ppo", "magrpo", "grpo"]) == 0
    assert capsys.readouterr().out == first
    assert command.main([*words, "--methods", "ippo", "--gather-only"]) == 0
    assert "`ippo`, `ppo`" not in capsys.readouterr().out
