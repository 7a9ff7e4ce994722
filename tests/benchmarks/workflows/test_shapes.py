import json

import pytest

from benchmarks.workflows import shapes as workflow_shapes
from mlrl_envs.workflows import SHAPES


@pytest.mark.parametrize("shape", [workflow_shapes.PLAIN, *SHAPES])
def test_a_graph_asks_for_as_many_answers_as_an_episode_can_have(shape):
    import mlrl_envs

    options = workflow_shapes.env_options(shape)
    env = mlrl_envs.make(workflow_shapes.ENV_ID, **options)
    env.reset(seed=0)
    written = 0
    while env.agents:
        written += len(env.acting)
        env.step(dict.fromkeys(env.acting, "REVISE"))
    assert workflow_shapes.most_answers(workflow_shapes.ENV_ID, options) == written


def test_an_untrained_workflow_stays_within_the_tokens():
    found = workflow_shapes.run("vote", seed=0, model="tiny-random", tokens=32, tasks=2)
    assert found["answer_tokens"] == 32 // workflow_shapes.most_answers(
        workflow_shapes.ENV_ID, workflow_shapes.env_options("vote")
    )
    assert 0 < found["written"] <= 32


def test_finished_runs_are_kept_and_missing_ones_played(tmp_path, monkeypatch, capsys):
    played = []

    def fake(shape, *, seed, **asked):
        played.append((shape, seed))
        figures = {"answer_tokens": 4, "return": seed / 2, "solved": 0.0, "written": 8.0}
        return {"shape": shape, "seed": seed, **asked, **figures}

    monkeypatch.setattr(workflow_shapes, "run", fake)
    words = ["--shapes", "plain", "vote", "--out", str(tmp_path), "--json"]
    assert workflow_shapes.main([*words, "--seeds", "1"]) == 0
    assert workflow_shapes.main([*words, "--seeds", "2"]) == 0
    assert played == [("plain", 0), ("vote", 0), ("plain", 1), ("vote", 1)]
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert rows[1]["returns"] == [0.0, 0.5]
    assert "| `vote` | 4 | 8 | 0.250 | 0.000, 0.500 | 0.000 |" in workflow_shapes.table(rows)


def test_a_record_of_other_code_is_not_reused(tmp_path, monkeypatch):
    played = []

    def fake(shape, *, seed, **asked):
        played.append(shape)
        figures = {"answer_tokens": 4, "return": 0.0, "solved": 0.0, "written": 8.0}
        return {"shape": shape, "seed": seed, **asked, **figures}

    monkeypatch.setattr(workflow_shapes, "run", fake)
    words = ["--shapes", "vote", "--out", str(tmp_path), "--seeds", "1"]
    for code in ("a", "a", "b"):
        monkeypatch.setattr(workflow_shapes, "program", lambda code=code: {"code": code})
        assert workflow_shapes.main(words) == 0
    assert played == ["vote", "vote"]
