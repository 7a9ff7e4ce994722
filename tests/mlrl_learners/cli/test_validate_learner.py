"""`mlrl validate learner`: a table of toys, as text and as JSON, and mistakes in one line."""

import json

import pytest

from mlrl_learners.cli import main

QUICK = ["--updates", "1", "--seeds", "1"]


def test_the_table_has_a_row_for_each_toy_and_walk(capsys):
    main(["validate", "learner", "grpo", *QUICK, "--gradient-rollouts", "40"])
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("learner  toy")
    assert len(rows) == 1 + 4 * 2  # toys, and walks that differ for one agent
    assert "±" in rows[1]


def test_json_holds_the_figures_and_the_status_tells_whether_returns_rise(capsys):
    words = ["magrpo", "--learner.optimizer.lr", "1e-9", "--gradient-rollouts", "0", "--json"]
    status = main(["validate", "learner", *words, *QUICK])
    results = json.loads(capsys.readouterr().out)["results"]
    assert status == 1  # nothing is learnt at this rate
    assert {result["toy"] for result in results} == {"late_cost", "doors", "retry", "relay"}
    assert {(r["branching"], r["joint_mode"]) for r in results} == {
        (branching, mode) for branching in ("tree", "chain") for mode in ("aligned", "cross")
    }
    assert all(result["gradient_error"] is None for result in results)
    assert any("does not rise" in result["problem"] for result in results)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["learner"], "needs the name of a learner: magrpo, "),
        (["learner", "magrp"], "unknown learner 'magrp'; did you mean 'magrpo'"),
        (["learner", "magrpo", "--learner.grop_size", "2"], "unknown option 'grop_size'"),
    ],
)
def test_a_mistake_is_one_line(words, message, capsys):
    assert main(["validate", *words]) == 2
    assert message in capsys.readouterr().err
