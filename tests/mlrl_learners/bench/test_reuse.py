"""Episodes of an earlier result: equal entries are taken over and scored again, others played."""

import json

import pytest

from mlrl_learners.bench.results import read_transcripts, save_result, write_result
from mlrl_learners.bench.reuse import reuse_episodes
from mlrl_learners.bench.suite import suite_of
from mlrl_learners.bench.suite_folder import SuiteFolder
from mlrl_learners.bench.suite_run import RunSettings, play_suite
from mlrl_learners.errors import ConfigError

pytestmark = pytest.mark.usefixtures("quick")
SETTINGS = RunSettings()
POSTS = {"env": "mlrl/tldr-v1", "split": "sample"}


@pytest.fixture
def earlier(make_suite, make_source, tmp_path):
    """A result with 4 tasks of seed 0."""
    source, suite = make_source(), make_suite(**POSTS, seeds=(0,))
    played = play_suite(suite, source, tmp_path / "earlier", SETTINGS)
    write_result(tmp_path / "earlier.json", suite, source.describe(), played, SETTINGS)
    return tmp_path / "earlier.json"


def resume(suite, source, earlier, folder, settings=SETTINGS):
    with SuiteFolder(folder) as held:
        added = reuse_episodes(earlier, suite, source, source.describe(), held, settings)
        return added, play_suite(suite, source, held, settings)


def test_only_episodes_that_are_new_are_played(make_suite, make_source, earlier, tmp_path):
    source = make_source()
    suite = make_suite(**POSTS, seeds=(0, 1))
    added, (played,) = resume(suite, source, earlier, tmp_path / "run")
    (whole,) = play_suite(suite, make_source(), tmp_path / "whole", SETTINGS)
    assert (added, played.missing, len(played.episodes)) == (4, 0, 8)
    assert [e["key"] for e in played.episodes] == [e["key"] for e in whole.episodes]
    assert [e["return"] for e in played.episodes] == [e["return"] for e in whole.episodes]
    assert {e["suite_seed"] for e in played.episodes[:4]} == {0}
    again, _ = resume(suite, source, earlier, tmp_path / "run")
    assert again == 0


def test_reused_episodes_are_scored_again(make_suite, make_source, earlier, tmp_path):
    result = json.loads(earlier.read_text())
    wrong = [{**each, "return": 9.0} for each in read_transcripts(earlier, result)]
    save_result(earlier, result, wrong)
    _, (played,) = resume(make_suite(**POSTS, seeds=(0,)), make_source(), earlier, tmp_path / "run")
    assert max(e["return"] for e in played.episodes) <= 1.0
    assert all(e["scorer"] for e in played.episodes)


@pytest.mark.parametrize("budget", [{"tokens": 9}, {"turns": 2}])
def test_an_entry_that_changed_is_played(make_suite, make_source, earlier, tmp_path, budget):
    source, suite = make_source(), make_suite(**POSTS, seeds=(0,), budget=budget)
    added, (played,) = resume(suite, source, earlier, tmp_path / "run")
    assert (added, played.missing) == (0, 0)
    assert source.made == 1


@pytest.mark.parametrize(
    ("prompts", "turns", "options", "reused"),
    [
        (True, 1, {"assignment": True}, 2),  # changes the reward only
        (True, 2, {"assignment": True}, 0),  # and the feedback, which the second turn shows
        (True, 2, {"communication": "broadcast"}, 0),
        (False, 1, {"assignment": True}, 0),  # nobody knows what was read
    ],
)
def test_with_other_options_episodes_are_reused_whose_agents_read_the_same(
    make_source, tmp_path, prompts, turns, options, reused
):
    entry = {**POSTS, "tasks": 2, "budget": {"turns": turns}, "show_prompts": prompts}
    before = {"name": "posts", "version": 0, "summary": "", "seeds": [0], "entries": [entry]}
    after = before | {"version": 1, "entries": [{**entry, "options": options}]}
    source = make_source(answer="Your teammate writes.")
    played = play_suite(suite_of(before), source, tmp_path / "before", SETTINGS)
    path = tmp_path / "before.json"
    write_result(path, suite_of(before), source.describe(), played, SETTINGS)
    asked = source.asked
    added, (now,) = resume(suite_of(after), source, path, tmp_path / "after")
    assert (added, now.missing, len(now.episodes)) == (reused, 0, 2)
    assert source.asked == asked + (2 - reused) * turns * 2


def test_an_episode_that_would_now_go_on_is_played(make_source, tmp_path):
    """Solved in the first of two turns with any length, and in neither with the options of now."""
    entry = {"env": "mlrl/story-v1", "split": "sample", "tasks": 2, "budget": {"turns": 2}}
    entry |= {"show_prompts": True, "options": {"reward": "paper", "min_ratio": 0.1}}
    before = {"name": "stories", "version": 0, "summary": "", "seeds": [0], "entries": [entry]}
    now = {"reward": "paper", "min_ratio": 2.0}
    after = before | {"version": 1, "entries": [{**entry, "options": now}]}
    source = make_source(answer="A fox carries letters through the snow.")
    played = play_suite(suite_of(before), source, tmp_path / "before", SETTINGS)
    assert [len(each["turns"]) for each in played[0].episodes] == [1, 1]
    path = tmp_path / "before.json"
    write_result(path, suite_of(before), source.describe(), played, SETTINGS)
    added, (found,) = resume(suite_of(after), source, path, tmp_path / "after")
    assert (added, [len(each["turns"]) for each in found.episodes]) == (0, [2, 2])


def test_with_other_data_episodes_are_played(make_source, two_environments, tmp_path):
    source, suite = make_source(), suite_of(two_environments)
    played = play_suite(suite, source, tmp_path / "before", SETTINGS)
    path = tmp_path / "before.json"
    write_result(path, suite, source.describe(), played, SETTINGS)
    result = json.loads(path.read_text())
    result["entries"][0]["data"] = "0" * 64
    path.write_text(json.dumps(result))
    with SuiteFolder(tmp_path / "after") as held:
        assert reuse_episodes(path, suite, source, source.describe(), held, SETTINGS) == 2


def test_a_result_of_another_precision_is_of_the_same_actor(
    make_suite, make_source, earlier, tmp_path
):
    result = json.loads(earlier.read_text())
    result["actor"]["options"] = {"compute": {"dtype": "bfloat16"}}
    earlier.write_text(json.dumps(result))
    actor = {**make_source().describe(), "options": {}}
    suite = make_suite(**POSTS, seeds=(0,))
    with SuiteFolder(tmp_path / "run") as held:
        assert reuse_episodes(earlier, suite, make_source(), actor, held, SETTINGS) == 4


def test_a_result_of_another_actor_or_decoding_is_refused(
    make_suite, make_source, earlier, tmp_path
):
    with pytest.raises(ConfigError, match="another actor: its base is 'scripted', not 'other'"):
        resume(make_suite(**POSTS), make_source("other"), earlier, tmp_path / "run")
    with pytest.raises(ConfigError, match="sampling, this run is not"):
        resume(
            make_suite(**POSTS),
            make_source(),
            earlier,
            tmp_path / "run",
            RunSettings(explore=False),
        )
    assert not (tmp_path / "run").exists()
