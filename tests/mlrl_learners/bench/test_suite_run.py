import json
from dataclasses import replace

import pytest

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_learners.actors import RandomActor
from mlrl_learners.bench.suite import suite_of
from mlrl_learners.bench.suite_folder import SuiteFolder
from mlrl_learners.bench.suite_run import RunSettings, play_suite
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.runs import lock
from mlrl_learners.runs.files import CONFIG_FILE, EPISODES_FILE, FAILURES_FILE

pytestmark = pytest.mark.usefixtures("addition_env")
OWN_TURNS = {"turns": None}
ONE_BY_ONE = RunSettings(batch_size=1)


@pytest.fixture
def suite(make_suite):
    return make_suite(budget=OWN_TURNS)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_seconds(records):
    return [{k: v for k, v in record.items() if k != "seconds"} for record in records]


def test_every_task_is_played_once_a_seed(suite, source, tmp_path):
    (played,) = play_suite(suite, source, tmp_path, RunSettings())
    assert [(e["suite_seed"], e["task_id"]) for e in played.episodes] == [
        (seed, f"train/{task}") for seed in (0, 1) for task in range(4)
    ]
    assert (played.planned, played.missing, played.left_out) == (8, 0, 0)


def test_what_is_done_is_not_played_again(suite, source, tmp_path):
    first = play_suite(suite, source, tmp_path, RunSettings())
    asked = source.asked
    assert play_suite(suite, source, tmp_path, RunSettings()) == first
    assert source.asked == asked
    assert len(lines(tmp_path / EPISODES_FILE)) == 8


def test_another_actor_or_budget_is_played_in_the_same_folder(make_suite, make_source, tmp_path):
    small = make_suite(budget={**OWN_TURNS, "tokens": 8})
    play_suite(small, make_source("a"), tmp_path, RunSettings())
    play_suite(small, make_source("b"), tmp_path, RunSettings())
    play_suite(
        make_suite(budget={**OWN_TURNS, "tokens": 9}), make_source("b"), tmp_path, RunSettings()
    )
    keys = [record["key"] for record in lines(tmp_path / EPISODES_FILE)]
    assert len(keys) == len(set(keys)) == 24


@pytest.mark.parametrize("kept", [0, 1, 3, 5, 7])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_interrupted_run_ends_as_if_nothing_had_happened(make_suite, tmp_path, kept, batch_size):
    class Random:
        def identity(self, seed, env_id):
            return {"name": "random"}

        def make(self, agents, *, env_id, tokens, seed):
            return RandomActor(99)

    suite = make_suite(env="mlrl/story-v1", split="sample")
    settings = RunSettings(batch_size=batch_size)
    (whole,) = play_suite(suite, Random(), tmp_path / "whole", settings)
    text = (tmp_path / "whole" / EPISODES_FILE).read_text().splitlines(keepends=True)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / EPISODES_FILE).write_text("".join(text[:kept]) + text[kept][: len(text[kept]) // 2])
    (again,) = play_suite(suite, Random(), broken, settings)
    assert without_seconds(again.episodes) == without_seconds(whole.episodes)
    assert len(lines(broken / EPISODES_FILE)) == len(text)


def test_failures_stay_beside_the_scores(make_suite, source, tmp_path):
    suite = make_suite(budget=OWN_TURNS, options={"broken": True})
    (played,) = play_suite(suite, source, tmp_path, RunSettings(attempts=2))
    assert [e["task_id"] for e in played.episodes if e["task_id"] == "train/3"] == []
    assert played.missing == 2
    assert [(f.error, f.message) for f in played.failures] == [("InfraError", "no worker")] * 2
    assert [record["tries"] for record in lines(tmp_path / FAILURES_FILE)] == [1, 1, 2, 2]


def test_failure_is_redone_when_the_run_is_resumed(make_suite, source, tmp_path, monkeypatch):
    suite = make_suite(budget=OWN_TURNS, options={"broken": True})
    (broken,) = play_suite(suite, source, tmp_path, RunSettings(attempts=1))
    assert broken.missing == 2
    before = (tmp_path / EPISODES_FILE).read_text()
    env = type(mlrl_envs.make("test/addition-v0"))
    monkeypatch.setattr(env, "__init__", _mended(env.__init__))
    (mended,) = play_suite(suite, source, tmp_path, RunSettings(attempts=1))
    assert mended.missing == 0
    assert (tmp_path / EPISODES_FILE).read_text().startswith(before)
    keys = [record["key"] for record in lines(tmp_path / EPISODES_FILE)]
    assert len(keys) == len(set(keys)) == 8


def _mended(init):
    def make(self, **options):
        init(self, **{**options, "broken": False})

    return make


def test_what_is_down_for_a_whole_batch_is_not_asked_for_the_next(suite, make_source, tmp_path):
    class Down:
        def act(self, observations, *, num_samples=1, explore=True):
            calls.append(1)
            raise InfraError("connection refused")

    calls = []
    source = make_source()
    source.make = lambda agents, *, env_id, tokens, seed: Down()
    (played,) = play_suite(suite, source, tmp_path, RunSettings(batch_size=2, attempts=1))
    assert played.missing == 8
    assert len(calls) == 3  # a batch of two, then each alone


def test_tasks_without_a_reference_are_left_out(tmp_path):
    from mlrl_learners.actors import ReferenceActor

    class Oracle:
        def identity(self, seed, env_id):
            return {"name": "reference"}

        def make(self, agents, *, env_id, tokens, seed):
            return ReferenceActor()

    entry = {"env": "mlrl/story-v1", "split": "sample", "tasks": 2}
    suite = suite_of({"name": "s", "version": 0, "summary": "", "seeds": [0], "entries": [entry]})
    (played,) = play_suite(suite, Oracle(), tmp_path, RunSettings())
    assert (played.left_out, played.missing, played.episodes) == (2, 0, ())


def test_one_actor_serves_all_seeds_it_is_the_same_for(suite, source, tmp_path):
    play_suite(suite, source, tmp_path, ONE_BY_ONE)
    assert source.made == 1


def test_content_of_a_task_is_part_of_its_key(tmp_path, make_source, monkeypatch):
    entry = {"env": "mlrl/story-v1", "split": "sample", "tasks": 1}
    suite = suite_of({"name": "s", "version": 0, "summary": "", "seeds": [0], "entries": [entry]})
    (first,) = play_suite(suite, make_source(), tmp_path, RunSettings())
    eval_suite = suite_of({**suite.as_dict(), "entries": [{**entry, "split": "eval"}]})
    (second,) = play_suite(eval_suite, make_source(), tmp_path, RunSettings())
    assert first.episodes[0]["key"] != second.episodes[0]["key"]


def test_a_change_of_the_scorer_is_played_again(make_source, tmp_path, monkeypatch):
    entry = {"env": "mlrl/story-v1", "split": "sample", "tasks": 2}
    suite = suite_of({"name": "s", "version": 0, "summary": "", "seeds": [0], "entries": [entry]})
    (old,) = play_suite(suite, make_source(), tmp_path, RunSettings())
    hashes = {**old.hashes, "scorer": "0" * 64}
    monkeypatch.setattr(mlrl_envs, "fingerprint", lambda env: hashes)
    (new,) = play_suite(suite, make_source(), tmp_path, RunSettings())
    assert [episode["scorer"] for episode in new.episodes] == ["0" * 64] * 2
    assert len(lines(tmp_path / EPISODES_FILE)) == 4


def test_a_folder_that_another_run_plays_into_is_refused(suite, source, tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "SECONDS", 0.0)
    with SuiteFolder(tmp_path) as held:
        play_suite(suite, source, held, RunSettings())
        with pytest.raises(RunDirError, match="is written by another run"):
            play_suite(suite, source, tmp_path, RunSettings())
    assert play_suite(suite, source, tmp_path, RunSettings())[0].missing == 0


def test_a_folder_of_a_training_run_is_refused_and_left_as_it_is(suite, source, tmp_path):
    (tmp_path / CONFIG_FILE).write_text("")
    with pytest.raises(RunDirError, match="holds a training run"):
        play_suite(suite, source, tmp_path, RunSettings())
    assert [path.name for path in tmp_path.iterdir()] == [CONFIG_FILE]


def test_a_folder_with_episodes_of_another_command_is_refused(suite, source, tmp_path):
    (tmp_path / EPISODES_FILE).write_text('{"env_id": "test/addition-v0"}\n')
    with pytest.raises(RunDirError, match="a line that is not of a suite: KeyError"):
        play_suite(suite, source, tmp_path, RunSettings())


def test_a_suite_that_cannot_be_made_leaves_no_folder(make_suite, source, tmp_path):
    suite = make_suite(budget=OWN_TURNS, options={"nonsense": 1})
    with SuiteFolder(tmp_path / "run") as folder, pytest.raises(ConfigError, match="nonsense"):
        play_suite(suite, source, folder, RunSettings())
    assert not (tmp_path / "run").exists()


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="batch_size must be at least 1, got 0"):
        RunSettings(batch_size=0)


def test_entries_of_one_environment_share_no_episode(make_suite, source, tmp_path):
    suite = make_suite(seeds=(0,), tasks=1, budget={"turns": None})
    entry = suite.entries[0]
    twin = replace(suite, entries=(entry, replace(entry, name="more", tasks=2)))
    _, second = play_suite(twin, source, tmp_path, RunSettings())
    assert [episode["entry"] for episode in second.episodes] == ["more", "more"]
