import json
import os

import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, MlrlError
from mlrl_envs.registration import BUILT_IN_GAMES
from mlrl_learners.bench.suite import load_suite, suite_files, suite_of

VALID = {
    "name": "mine",
    "version": 1,
    "summary": "two",
    "seeds": [0, 1],
    "budget": {"tokens": 32},
    "entries": [
        {"env": "mlrl/story-v1", "split": "sample", "tasks": 2},
        {"env": "mlrl/math-v2", "split": "sample", "budget": {"turns": 2}},
    ],
}


def changed(**changes):
    return {key: value for key, value in {**VALID, **changes}.items() if value is not None}


def with_entry(**changes):
    return changed(entries=[{**VALID["entries"][0], **changes}])


def test_common_budget_holds_where_an_entry_does_not_say_otherwise():
    first, second = suite_of(VALID).entries
    assert (first.budget.turns, first.budget.tokens) == (1, 32)
    assert (second.budget.turns, second.budget.tokens) == (2, 32)


def test_what_is_saved_is_what_is_loaded():
    suite = suite_of(VALID)
    assert suite_of(suite.as_dict()) == suite
    assert suite_of(suite.as_dict()).hash == suite.hash


def test_a_suite_holds_the_graph_of_a_workflow_and_not_its_file(tmp_path):
    graph, path = tmp_path / "team.yaml", tmp_path / "suite.yaml"
    options = {"workflow": str(graph), "num_aux": 0}
    path.write_text(json.dumps(with_entry(env="mlrl/humaneval-v1", options=options)))
    graph.write_text("shape: critic\n")
    suite = load_suite(str(path))
    assert suite.entries[0].options == {"workflow": {"shape": "critic"}, "num_aux": 0}
    graph.write_text("shape: debate\n")
    assert load_suite(str(path)).hash != suite.hash
    graph.unlink()
    assert suite_of(suite.as_dict()) == suite
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        load_suite(str(path))


def test_a_suite_without_a_common_scale_is_another_suite():
    suite = suite_of(changed(common_scale=False))
    assert suite_of(suite.as_dict()) == suite
    assert suite.hash != suite_of(VALID).hash
    assert suite_of(changed(common_scale=True)).hash == suite_of(VALID).hash


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "must be a mapping"),
        (changed(version=None), "version is missing"),
        (changed(sedes=[0]), "did you mean 'seeds'"),
        (changed(seeds=[]), "seeds must not be empty"),
        (changed(seeds=[0, 0]), "seed 0 appears twice"),
        (changed(seeds=[-1]), "from 0 to"),
        (changed(version="one"), "version must be an int"),
        (changed(name="two words"), "one word"),
        (changed(common_scale="no"), "common_scale must be true or false"),
        (changed(entries=VALID["entries"][:1] * 2), "appears twice"),
        (changed(budget={"tokens": 0}), "tokens must be at least 1, got 0"),
        (with_entry(env="mlrl/storry-v0"), "did you mean 'mlrl/story-v1'"),
        (with_entry(env="mlrl/story-v0"), "was replaced by 'mlrl/story-v1'"),
        (with_entry(taks=3), "did you mean 'tasks'"),
        (with_entry(tasks=0), "tasks must be at least 1"),
        (with_entry(budget={"turn": 2}), "did you mean 'turns'"),
        (with_entry(options={"max_turns": 2}), "set by budget.turns"),
        (with_entry(split=None), "split must be text"),
    ],
)
def test_mistake_is_one_line_that_names_it(value, message):
    with pytest.raises(MlrlError, match=message) as caught:
        suite_of(value, "mine.yaml")
    assert "\n" not in str(caught.value)


def test_unknown_suite_names_the_nearest():
    with pytest.raises(MlrlError, match="did you mean 'writing'"):
        load_suite("writting")


def test_option_that_an_environment_lacks_names_the_entry():
    (entry,) = suite_of(with_entry(options={"rewards": "paper"})).entries
    with pytest.raises(MlrlError, match=r"mlrl/story-v1:sample.*'reward'"):
        entry.make_env()


def test_suite_of_ones_own_is_read_from_its_path(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(
        "name: own\nversion: 0\nsummary: mine\nseeds: [3]\nentries:\n"
        "  - {env: mlrl/story-v1, split: sample}\n"
    )
    assert load_suite(str(path)).seeds == (3,)


def test_only_keeps_entries_by_name_or_environment():
    suite = suite_of(VALID)
    assert [e.env for e in suite.only(["mlrl/math-v2"]).entries] == ["mlrl/math-v2"]
    assert suite.only(["mlrl/story-v1:sample"]).entries == suite.entries[:1]
    with pytest.raises(MlrlError, match="unknown entry"):
        suite.only(["mlrl/mathh"])


def test_ours_are_there():
    ours = {"smoke", "writing", "coding", "completion", "reasoning", "games", "building"}
    assert set(suite_files()) == ours


def test_the_suite_of_games_has_every_game_and_keeps_its_turn_limit():
    entries = load_suite("games").entries
    assert {entry.env for entry in entries} == set(BUILT_IN_GAMES)
    for entry in entries:
        assert entry.budget.turns is None or entry.env == "mlrl/puzzle-v0"
        assert entry.make_env().max_turns <= 42


@pytest.mark.parametrize("name", sorted({*suite_files()} - {"smoke"}))
def test_ours_have_fifty_tasks_an_entry_or_a_whole_split(name):
    assert all(entry.tasks is None or entry.tasks >= 50 for entry in load_suite(name).entries)


@pytest.mark.skipif("MLRL_DATA_DIR" not in os.environ, reason="MLRL_DATA_DIR is not set")
@pytest.mark.parametrize("name", sorted({*suite_files()} - {"smoke"}))
def test_ours_play_no_task_of_the_split_that_is_trained_on_by_default(name):
    for entry in load_suite(name).entries:
        played = entry.make_env().family.tasks
        trained = mlrl_envs.make(entry.env, **{**entry.env_options, "split": "train"}).family.tasks
        ours = {
            repr(played[index]) for index in range(min(len(played), entry.tasks or len(played)))
        }
        assert ours.isdisjoint(repr(trained[index]) for index in range(len(trained))), entry.name


@pytest.mark.parametrize("name", sorted(suite_files()))
def test_ours_have_three_seeds_or_are_for_smoke(name):
    suite = load_suite(name)
    assert suite.name == name
    assert len(suite.seeds) >= 3 or name == "smoke"


def test_smoke_needs_no_data_and_has_an_environment_of_every_kind():
    entries = load_suite("smoke").entries
    ours = {env_id for env_id in mlrl_envs.registry if env_id.startswith("mlrl/")}
    kinds = "story tldr arxiv humaneval coophumaneval mbpp classeval math debate tools"
    played = {entry.env for entry in entries}
    assert {*kinds.split(" ")} <= {env_id.split("/")[1].split("-v")[0] for env_id in played}
    assert played <= ours
    assert {entry.split for entry in entries} == {"sample"}
