"""Stumbles 1, 15 and 17: the templates of `mlrl init` are trained, put on a suite and reported."""

import json

import pytest

import mlrl_envs
import mlrl_learners

RUN = "bench run --suite mine.yaml --run-dir runs/bench"


@pytest.fixture
def templates(here):
    """The templates, registered as their packages register them, and a suite and a run."""
    mlrl_envs.register("me/my-env-v0", "my_env.py:parallel_env")
    mlrl_learners.register("my_learner", mlrl_learners.registry["my_learner.py:MyLearner"].factory)
    (here / "mine.yaml").write_text(
        "name: mine\nversion: 0\nsummary: mine\nseeds: [0]\nbudget: {turns: 2, tokens: 64}\n"
        "entries:\n  - {env: me/my-env-v0, split: train}\n"
    )
    (here / "train.yaml").write_text(
        "env: {id: me/my-env-v0}\nlearner: {name: my_learner}\n"
        "train: {iterations: 30, tasks_per_iteration: 2, eval_every: 15}\n"
    )
    return here


def test_the_unchanged_learner_goes_through_every_command(templates, type_in, type_json):
    assert type_in("train train.yaml --run-dir runs/a")[0] == 0
    assert type_json("evaluate runs/a --split train --greedy")["solved_rate"] == 1.0
    status, _, err = type_in(f"{RUN} --actor runs/a --greedy")
    assert status == 0
    assert "takes no max_new_tokens: its answers are not limited" in err
    result = json.loads((templates / "runs" / "bench" / "result.json").read_text())
    assert result["overall"]["mean"] == 1.0
    assert "token_budget" in result["actor"]
    assert type_in("play me/my-env-v0 --actor runs/a")[0] == 0
    assert type_in("report runs/a")[0] == 0
    assert type_in("export runs/a --out all.jsonl")[0] == 0
    words = "collect me/my-env-v0 --actor runs/a --out good.jsonl --filter-reward 0.5"
    assert type_in(words)[0] == 0
    assert type_in("list my_learner")[0] == 0


def test_a_learner_that_takes_a_budget_gets_that_of_the_suite(templates, type_in):
    (templates / "cut.py").write_text(
        "from my_learner import MyLearner\n\n\n"
        "class Cut(MyLearner):\n"
        "    def __init__(self, agents, seed=0, max_new_tokens=1):\n"
        "        assert max_new_tokens in (1, 64)\n"
        "        super().__init__(agents, seed)\n"
    )
    words = "train train.yaml --run-dir runs/a --train.iterations 1 --train.eval_every 0"
    assert type_in(f"{words} --learner.name cut.py:Cut")[0] == 0
    assert type_in(f"{RUN} --actor runs/a")[2].count("max_new_tokens") == 0


def test_the_unchanged_environment_is_validated(templates, type_in, type_json):
    assert type_json("validate me/my-env-v0")["failed"] == 0
    assert type_in("audit me/my-env-v0 --budget 30")[0] == 0


def test_an_environment_without_max_turns_has_no_turns_in_a_suite(templates, type_in):
    (templates / "guess.yaml").write_text(
        "name: mine\nversion: 0\nsummary: x\nseeds: [0]\n"
        "entries: [{env: 'me.py:Guess', tasks: 2}]\n"
    )
    status, out, err = type_in("bench run --suite guess.yaml --actor random")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "unknown option 'max_turns'" in err
    assert "set budget.turns to null there" in err
