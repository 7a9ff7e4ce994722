import json

import pytest

import mlrl_learners
from benchmarks.recipes import toys as recipes
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
    figures = {"before": 0.1, "after": after, "cpu_seconds": seconds}
    return {"recipe": recipe, "seed": seed, "updates": 2, "toy": "late_cost", **figures}


def test_gains_and_seconds_are_relative_to_the_default():
    records = [record("magrpo", seed, 0.5, 2.0) for seed in (0, 1)]
    records += [record("drmas", 0, 0.75, 3.0), record("drmas", 1, 0.25, 5.0)]
    (row,) = recipes.rows(records, ["drmas"])
    assert (row["default"], row["gains"], row["seconds_ratio"]) == ("magrpo", [0.25, -0.25], 2.0)
    line = "| `drmas` | `magrpo` | 0.10 → 0.50 | +0.00 ± 3.18 | 2.0 times |"
    assert line in recipes.table([row])


def test_the_interval_of_a_gain_is_that_of_student():
    records = [record("magrpo", seed, 0.0, 1.0) for seed in range(3)]
    records += [record("dapo", seed, 0.0, 1.0) for seed in range(3)]
    records += [record("grpo", seed, 0.0, 1.0) for seed in range(3)]
    for seed, gain in enumerate((0.1, 0.2, 0.3)):
        records[3 + seed]["after"] = gain
    (row,) = recipes.rows(records, ["dapo"])
    assert row["gain"] == 0.2
    assert row["half_width"] == pytest.approx(4.303 * 0.1 / 3**0.5, abs=1e-3)
    (row,) = recipes.rows([each for each in records if each["seed"] == 0], ["dapo"])
    assert row["half_width"] is None


def test_toys_are_side_by_side():
    records = [record(name, 0, 0.5, 1.0) for name in ("magrpo", "drmas")]
    records += [{**each, "toy": "doors", "after": 1.0} for each in records]
    found = recipes.table(recipes.rows(records, ["drmas"])).splitlines()
    assert "`late_cost`, best 0.60" in found[0]
    assert found[2].count("→") == 2
    assert "0.10 → 1.00" in found[2]


def test_the_table_of_the_page_is_that_of_the_stored_results():
    stored = json.loads(recipes.RESULTS.read_text(encoding="utf-8"))
    assert recipes.table(stored["rows"]) in recipes.PAGE.read_text(encoding="utf-8")
    assert {row["recipe"] for row in stored["rows"]} == set(recipes.RECIPES)


def test_results_and_table_are_written_where_they_are_asked_for(tmp_path, monkeypatch):
    page, results = tmp_path / "page.md", tmp_path / "recipes.json"
    page.write_text(f"before\n{recipes.BEGIN}\nold\n{recipes.END}\nafter\n")
    monkeypatch.setattr(recipes, "PAGE", page)
    monkeypatch.setattr(recipes, "RESULTS", results)
    monkeypatch.setattr(
        recipes,
        "run",
        lambda recipe, *, seed, toy, **_: {**record(recipe, seed, 0.5, 1.0), "toy": toy},
    )
    words = ["--recipes", "drmas", "--updates", "2", "--seeds", "2", "--out", str(tmp_path)]
    assert recipes.main([*words, "--publish"]) == 0
    assert json.loads(results.read_text())["rows"][1]["toy"] == "doors"
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert "old" not in lines


def test_finished_runs_are_kept_and_missing_ones_trained(tmp_path, monkeypatch, capsys):
    trained = []

    def fake(recipe, *, seed, updates, toy):
        trained.append((recipe, seed))
        return {**record(recipe, seed, 0.5, 1.0), "updates": updates, "toy": toy}

    monkeypatch.setattr(recipes, "run", fake)
    words = ["--recipes", "dapo", "--updates", "2", "--out", str(tmp_path), "--json"]
    words += ["--toys", "late_cost"]
    assert recipes.main([*words, "--seeds", "1"]) == 0
    assert recipes.main([*words, "--seeds", "2"]) == 0
    assert trained == [("grpo", 0), ("dapo", 0), ("grpo", 1), ("dapo", 1)]
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert rows[0]["gains"] == [0.0, 0.0]


def test_a_run_with_other_options_is_trained_again(tmp_path, monkeypatch):
    trained = []

    def fake(recipe, *, seed, updates, toy):
        trained.append(recipe)
        return {**record(recipe, seed, 0.5, 1.0), "updates": updates, "toy": toy}

    monkeypatch.setattr(recipes, "run", fake)
    words = ["--recipes", "dapo", "--updates", "2", "--seeds", "1", "--toys", "doors"]
    for size in (8, 16):
        monkeypatch.setattr(recipes, "ROLLOUTS", size)
        assert recipes.main([*words, "--out", str(tmp_path)]) == 0
    assert trained == ["grpo", "dapo"] * 2


def test_a_part_of_the_recipes_does_not_replace_all_of_them(capsys):
    before = recipes.RESULTS.read_bytes()
    assert recipes.main(["--recipes", "drmas", "--publish"]) == 2
    assert "dapo on doors" in capsys.readouterr().err
    assert recipes.main(["--seeds", "2", "--publish"]) == 2
    assert "stored results: seed 2\n" in capsys.readouterr().err
    assert recipes.RESULTS.read_bytes() == before


def test_a_recipe_learns_on_the_toy():
    found = recipes.run("drmas", seed=0, updates=2, toy="late_cost")
    assert 0.0 <= found["before"] <= 0.6
    assert found["cpu_seconds"] > 0.0
