"""Teams of the leaderboard: one for each environment of a suite, with the budget of the suite."""

import pytest

import mlrl_envs
from benchmarks import suite_teams
from benchmarks.suite_teams import SUITE, TEAMS, run_config
from mlrl_learners.bench.suite import load_suite
from tests.benchmarks.finished_runs import write_finished_run

ENTRIES = dict(zip(TEAMS, load_suite(SUITE).entries, strict=True))


@pytest.mark.parametrize("name", TEAMS)
def test_a_team_learns_on_train_tasks_with_the_budget_of_the_suite(name):
    config, entry = run_config(name, 2), ENTRIES[name]
    assert (config.env.id, config.train.seed) == (entry.env, 2)
    assert config.env.options["split"] == "train"
    assert config.env.options["max_turns"] == entry.budget.turns
    assert config.learner.options["sampling"]["max_new_tokens"] == entry.budget.tokens
    mlrl_envs.make(config.env.id, **{**config.env.options, "split": "sample"}).close()


def test_finished_teams_are_not_trained_again(tmp_path):
    for name in TEAMS:
        config = run_config(name, 0)
        last = config.train.iterations
        write_finished_run(tmp_path / f"{name}-0", config, [0.1] * last, {})
        (tmp_path / f"{name}-0" / "checkpoints" / f"step_{last}").mkdir(parents=True)
    assert suite_teams.main(["--runs", str(tmp_path)]) == 0
