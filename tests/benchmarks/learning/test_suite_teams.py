"""Teams of the leaderboard: one for each environment of a suite, with the budget of the suite."""

import pytest

import mlrl_envs
from benchmarks.learning import suite_teams
from benchmarks.learning.suite_teams import METHODS, SUITE, TEAMS, methods_of, run_config
from mlrl_learners.algorithms.learner_configs import default_config
from mlrl_learners.bench.suite import load_suite
from mlrl_learners.config.groups import build_config
from tests.benchmarks.finished_runs import write_finished_run

ENTRIES = dict(zip(TEAMS, load_suite(SUITE).entries, strict=True))


RUNS = [(name, method) for name in TEAMS for method in methods_of(name)]


@pytest.mark.parametrize(("name", "method"), RUNS)
def test_a_team_learns_on_train_tasks_with_the_budget_of_the_suite(name, method):
    config, entry = run_config(name, 2, method), ENTRIES[name]
    assert (config.env.id, config.train.seed) == (entry.env, 2)
    assert config.env.options["split"] == "train"
    assert config.env.options["max_turns"] == entry.budget.turns
    assert config.learner.options["sampling"]["max_new_tokens"] == entry.budget.tokens
    mlrl_envs.make(config.env.id, **{**config.env.options, "split": "sample"}).close()
    build_config(type(default_config(config.learner.name)), config.learner.options)


@pytest.mark.parametrize("name", TEAMS)
def test_all_methods_sample_as_many_answers_in_an_update(name):
    counts = set()
    for method in methods_of(name):
        config = run_config(name, 0, method)
        kind = type(default_config(config.learner.name))
        group = build_config(kind, config.learner.options).group
        answers = group.size * getattr(group, "rollouts", 1)  # sft has one rollout
        counts.add(config.train.tasks_per_iteration * answers)
    assert len(counts) == 1


@pytest.mark.parametrize("method", METHODS)
def test_finished_teams_are_not_trained_again(method, tmp_path):
    for name in (each for each in TEAMS if method in methods_of(each)):
        config = run_config(name, 0, method)
        last, folder = config.train.iterations, tmp_path / f"{name}-{method}-0"
        write_finished_run(folder, config, [0.1] * last, {})
        (folder / "checkpoints" / f"step_{last}").mkdir(parents=True)
    words = ["--runs", str(tmp_path), "--methods", method, "--seeds", "0"]
    assert suite_teams.main(words) == 0


def test_one_agent_writes_both_texts_with_one_model_and_reads_the_first():
    config = run_config("story", 0, "one-magrpo")
    assert config.learner.options["team"]["share_weights"] is True
    env = mlrl_envs.make(config.env.id, **config.env.options)
    env.reset(seed=0)
    assert env.acting == ("setup",)
    observations, *_ = env.step({"setup": "A whale sings at night."})
    assert env.acting == ("story",)
    assert "A whale sings at night." in observations["story"]


def test_no_agent_debates_for_both_sides():
    assert "one-magrpo" not in methods_of("debate")
    with pytest.raises(SystemExit, match="2"):
        suite_teams.main(["--envs", "debate", "--methods", "one-magrpo"])
