import dataclasses
import json
import re

import pytest
from transformers import AutoModelForCausalLM

import mlrl_envs
from benchmarks.games.model import word_tokenizer
from benchmarks.recipes import curves as recipe_curves
from benchmarks.recipes.tasks import DEFAULT, TASKS, run_config
from mlrl_envs.datasets.math import load_problems
from mlrl_learners.config.run import load_config, to_mapping
from mlrl_learners.config.yaml import dump_yaml
from mlrl_learners.errors import RunDirError
from mlrl_learners.runs.demonstrations import read_demonstrations

NAMES = (DEFAULT, *recipe_curves.RECIPES)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("recipe", NAMES)
def test_recipes_differ_only_by_the_options_that_make_them(task, recipe):
    config = run_config(task, recipe, 3, "tiny-random")
    default = run_config(task, DEFAULT, 3, "tiny-random")
    assert config.env == default.env
    for group in ("sampling", "compute"):
        assert config.learner.options[group] == default.learner.options[group]
    assert config.learner.options["optimizer"]["lr"] == default.learner.options["optimizer"]["lr"]
    size = config.learner.options.get("group", {}).get("size", 4)
    assert config.train.tasks_per_iteration * size == task.answers
    if recipe != DEFAULT:
        assert config.learner.name == load_config(recipe).learner.name


def record(recipe, seed, after):
    return {"task": "math", "recipe": recipe, "seed": seed, "before": 0.25, "after": after,
            "returns": [0.25]}  # fmt: skip


def test_gains_are_differences_at_the_same_seed():
    records = [record("magrpo", seed, 0.5) for seed in (0, 1)]
    records += [record("drmas", 0, 0.75), record("drmas", 1, 0.25)]
    default, row = recipe_curves.rows(records)
    assert (default["gain"], default["learnt"]) == (0.0, 0.25)
    assert (row["gain"], row["learnt"]) == (0.0, 0.25)
    line = "| math | `drmas` | 2 | 0.25 → 0.50 | +0.25 ± 3.18 | +0.00 ± 3.18 |"
    assert line in recipe_curves.table([default, row])


def test_a_recipe_without_runs_of_the_default_has_no_gain():
    (row,) = recipe_curves.rows([record("c3", 0, 0.5)])
    assert row["gain"] is None
    assert "| math | `c3` | 1 | 0.25 → 0.50 | +0.25 |  |" in recipe_curves.table([row])


@pytest.fixture
def small(monkeypatch):
    """Tasks of one update with a tiny model."""
    imitation = dataclasses.replace(TASKS["math"].imitation, demonstrations=8, iterations=1)
    options = {"sampling": {"max_new_tokens": 4}, "optimizer": {"lr": 1e-4}}
    changes = {"iterations": 1, "answers": 4, "eval_tasks": 2, "model": "tiny-random"}
    plan = dataclasses.replace(TASKS["math"], learner=options, imitation=imitation, **changes)
    monkeypatch.setattr(recipe_curves, "TASKS", {"math": plan})


def test_a_small_model_reads_the_problem_and_the_own_role_alone():
    plan = TASKS["small-math"]
    env = mlrl_envs.make(plan.env_id, split="eval", **plan.env)
    observations, _ = env.reset(seed=0)
    tokenizer = word_tokenizer(observations.values(), plan.model.unread, digits=True)
    for agent, text in observations.items():
        question = re.search(r"What is (.*)\?", text)[1]
        read = tokenizer.decode(tokenizer(text)["input_ids"])
        assert read.split() == [*question.split(), agent]


def test_every_reference_solution_survives_the_tokenizer_of_a_small_model():
    plan = TASKS["small-math"]
    env = mlrl_envs.make(plan.env_id, split="eval", **plan.env)
    answers = [f"{task.solution}\nAnswer: {task.answer}" for task in env.family.tasks]
    tokenizer = word_tokenizer(answers, plan.model.unread, digits=True)
    assert any("-" in task.answer for task in env.family.tasks)
    for answer in answers:
        ids = tokenizer(answer)["input_ids"]
        assert tokenizer.decode(ids, skip_special_tokens=True) == answer
        assert len(ids) < plan.learner["sampling"]["max_new_tokens"]


def test_a_small_model_imitates_what_agents_read_in_problems_of_all_variants(tmp_path, monkeypatch):
    plan = TASKS["small-math"]
    few = {"demonstrations": 2, "iterations": 1, "variants": plan.imitation.variants[:2]}
    imitation = dataclasses.replace(plan.imitation, **few)
    monkeypatch.setattr(
        recipe_curves, "TASKS", {"small-math": dataclasses.replace(plan, imitation=imitation)}
    )
    start = recipe_curves._imitated("small-math", tmp_path)
    assert AutoModelForCausalLM.from_pretrained(start).config.hidden_size == 64
    twice = dataclasses.replace(imitation, demonstrations=3)
    changed = {"small-math": dataclasses.replace(plan, imitation=twice)}
    monkeypatch.setattr(recipe_curves, "TASKS", changed)
    with pytest.raises(RunDirError, match="made in another way"):
        recipe_curves._imitated("small-math", tmp_path)
    shown = {each.observation: each.actions["solver"]
             for each in read_demonstrations(tmp_path / "small-math-references.jsonl")
             if each.agent == "solver"}  # fmt: skip
    assert len(shown) == 2 * len(imitation.variants)
    for variant in imitation.variants:
        env = mlrl_envs.make(plan.env_id, **{**plan.env, **variant}, split="train")
        observations, _ = env.reset(options={"task_index": 1})
        assert shown[observations["solver"]] == env.reference_actions()["solver"]


def test_no_held_out_problem_is_imitated():
    plan = TASKS["small-math"]
    seeds = [variant["problem_seed"] for variant in plan.imitation.variants]
    imitated, held_out = (
        {task.question for seed in kept
         for task in load_problems(split, seed=seed, topics=("arithmetic",), levels=(1,))}
        for split, kept in (("train", seeds), ("eval", [plan.env["problem_seed"]]))
    )  # fmt: skip
    assert plan.env["problem_seed"] not in seeds
    assert len(imitated) > 8000
    assert not imitated & held_out


def test_figures_are_added_to_those_that_are_published(tmp_path, monkeypatch):
    page, results = tmp_path / "learners.md", tmp_path / "results.json"
    page.write_text(f"{recipe_curves.BEGIN}\n{recipe_curves.END}\n")
    monkeypatch.setattr(recipe_curves, "PAGE", page)
    monkeypatch.setattr(recipe_curves, "RESULTS", results)
    monkeypatch.setattr(recipe_curves, "_train", lambda *asked: True)
    found = {("magrpo", 0): 0.5, ("c3", 0): 0.75, ("magrpo", 1): 0.25, ("c3", 1): 0.25}
    monkeypatch.setattr(
        recipe_curves,
        "_record",
        lambda task, recipe, seed, runs: record(recipe, seed, found[recipe, seed]),
    )
    for seed in ("1", "0"):
        words = ["--tasks", "math", "--recipes", "c3", "--seeds", seed, "--publish"]
        assert recipe_curves.main(words) == 0
    runs = json.loads(results.read_text())["runs"]
    assert [(run["recipe"], run["seed"]) for run in runs] == sorted(
        found, key=lambda k: k[0] == "c3"
    )
    assert "| math | `c3` | 2 |" in page.read_text()


def test_results_of_a_recipe_that_was_removed_are_dropped(tmp_path, monkeypatch):
    page, results = tmp_path / "learners.md", tmp_path / "results.json"
    page.write_text(f"{recipe_curves.BEGIN}\n{recipe_curves.END}\n")
    results.write_text(json.dumps({"runs": [record("removed", 0, 0.5)]}))
    monkeypatch.setattr(recipe_curves, "PAGE", page)
    monkeypatch.setattr(recipe_curves, "RESULTS", results)
    recipe_curves._publish([record("magrpo", 0, 0.5)])
    assert [run["recipe"] for run in json.loads(results.read_text())["runs"]] == ["magrpo"]


def test_a_run_of_another_recipe_is_left_out_and_nothing_is_published(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(recipe_curves, "RESULTS", tmp_path / "results.json")
    folder = tmp_path / "story-magrpo-0"
    folder.mkdir()
    config = run_config(TASKS["story"], "drmas", 0, TASKS["story"].model)
    (folder / "config.yaml").write_text(dump_yaml(to_mapping(config)))
    words = ["--tasks", "story", "--recipes", "magrpo", "--seeds", "0", "--runs", str(tmp_path)]
    assert recipe_curves.main([*words, "--gather-only", "--publish"]) == 1
    assert "left out: story, magrpo, seed 0" in (message := capsys.readouterr().err)
    assert "another configuration" in message
    assert not (tmp_path / "results.json").exists()


@pytest.mark.slow
def test_finished_runs_are_kept_and_published(small, tmp_path, monkeypatch, capsys):
    page = tmp_path / "learners.md"
    page.write_text(f"Before.\n{recipe_curves.BEGIN}\n{recipe_curves.END}\nAfter.\n")
    monkeypatch.setattr(recipe_curves, "PAGE", page)
    monkeypatch.setattr(recipe_curves, "RESULTS", tmp_path / "results.json")
    words = ["--tasks", "math", "--recipes", "drmas", "--seeds", "0"]
    words += ["--runs", str(tmp_path / "runs"), "--publish"]
    assert recipe_curves.main(words) == 0
    first = json.loads((tmp_path / "results.json").read_text())
    assert [run["recipe"] for run in first["runs"]] == ["magrpo", "drmas"]
    assert page.read_text().count("| math |") == 2
    monkeypatch.setattr(recipe_curves, "finish", lambda config, run_dir: True)
    assert recipe_curves.main(words) == 0
    assert json.loads((tmp_path / "results.json").read_text()) == first
