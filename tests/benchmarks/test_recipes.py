import json

import pytest

import mlrl_learners
from benchmarks import recipes
from mlrl_learners.config.run import load_config
from mlrl_learners.registry import registry
from mlrl_learners.testing.toy_model import toy_model


@pytest.fixture(scope="module")
def model():
    return toy_model()


@pytest.mark.parametrize("recipe", recipes.RECIPES)
def test_every_recipe_can_be_made_at_the_size_of_the_toy(recipe, model):
    name = load_config(recipe).learner.name
    agents = ("left",) if registry[name].max_agents == 1 else ("left", "right")
    options = recipes.toy_options(recipe)
    learner = mlrl_learners.make(name, agents=agents, model=model, **options)
    assert learner.config.sampling.max_new_tokens == 1
    assert learner.config.optimizer.lr == 1e-2
    assert learner.rollout.num_samples <= 4


def record(recipe, seed, after, seconds):
    figures = {"before": 0.1, "after": after, "seconds": seconds}
    return {"recipe": recipe, "seed": seed, "updates": 2, "toy": "late_cost", **figures}


def test_gains_and_seconds_are_relative_to_the_default():
    records = [record("magrpo", seed, 0.5, 2.0) for seed in (0, 1)]
    records += [record("drmas", 0, 0.75, 3.0), record("drmas", 1, 0.25, 5.0)]
    (row,) = recipes.rows(records, ["drmas"])
    assert (row["default"], row["gains"], row["seconds_ratio"]) == ("magrpo", [0.25, -0.25], 2.0)
    assert "| `drmas` | `magrpo` | 0.10 | 0.50 | +0.25, -0.25 | 2.0 times |" in recipes.table([row])


def test_finished_runs_are_kept_and_missing_ones_trained(tmp_path, monkeypatch, capsys):
    trained = []

    def fake(recipe, *, seed, updates, toy):
        trained.append((recipe, seed))
        return {**record(recipe, seed, 0.5, 1.0), "updates": updates, "toy": toy}

    monkeypatch.setattr(recipes, "run", fake)
    words = ["--recipes", "dapo", "--updates", "2", "--out", str(tmp_path), "--json"]
    assert recipes.main([*words, "--seeds", "1"]) == 0
    assert recipes.main([*words, "--seeds", "2"]) == 0
    assert trained == [("grpo", 0), ("dapo", 0), ("grpo", 1), ("dapo", 1)]
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert rows[0]["gains"] == [0.0, 0.0]


def test_a_recipe_learns_on_the_toy():
    found = recipes.run("drmas", seed=0, updates=2)
    assert 0.0 <= found["before"] <= 0.6
    assert found["seconds"] > 0.0
