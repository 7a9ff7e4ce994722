import json
from pathlib import Path

import pytest

import mlrl_learners
from mlrl_envs.errors import ContractError, InfraError
from mlrl_learners.cli import main
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.evaluation.collect import collect
from mlrl_learners.runs import lock
from mlrl_learners.testing import ScriptedActor

ENV_ID = "test/addition-v0"

pytestmark = pytest.mark.usefixtures("addition_env")


def even_is_known(agent, text):
    return str(int(text) + 1) if int(text) % 2 == 0 else "?"


def run(out, **options):
    settings = {"env_id": ENV_ID, "actor": ScriptedActor(even_is_known), "out": out, **options}
    return collect(**settings)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_episode_is_a_line_that_says_where_it_comes_from(tmp_path):
    result = run(tmp_path / "a" / "e.jsonl", samples=2, actor_name="evens")
    assert (result.episodes, result.played, result.kept, result.failures) == (8, 8, 8, ())
    records = lines(result.path)
    assert [record["number"] for record in records] == list(range(8))
    assert {record["source"]["actor"] for record in records} == {"evens"}
    turn = records[0]["turns"][0]
    assert turn["observations"] == {"left": "0", "right": "0"}
    assert turn["actions"] == {"left": "1", "right": "1"}
    assert turn["finish_reasons"] == {"left": "stop", "right": "stop"}


@pytest.mark.parametrize(("low", "numbers"), [(None, [0, 1, 2, 3]), (0.0, [0, 1, 2, 3]),
                                              (1.0, [0, 2]), (1.5, [])])  # fmt: skip
def test_only_episodes_that_earned_enough_are_kept(low, numbers, tmp_path):
    result = run(tmp_path / "e.jsonl", filter_reward=low)
    assert (result.played, result.kept) == (4, len(numbers))
    assert [record["number"] for record in lines(result.path)] == numbers


def test_a_file_with_something_in_it_is_not_touched_unless_resumed(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text("mine")
    with pytest.raises(RunDirError, match="is not empty; resume it or choose another file"):
        run(path)
    assert path.read_text() == "mine"


def test_a_file_that_another_process_writes_is_refused_until_it_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "SECONDS", 0.0)
    path = tmp_path / "e.jsonl"
    with lock.hold_file(path), pytest.raises(RunDirError, match="by another process that has not"):
        run(path, resume=True)
    assert path.read_text() == ""
    assert run(path).episodes == 4


@pytest.mark.parametrize("change", [{"seed": 1}, {"samples": 2}, {"filter_reward": 0.5},
                                    {"split": "eval"}, {"explore": False},
                                    {"tasks": [2]}])  # fmt: skip
def test_another_collection_is_not_mixed_in(change, tmp_path):
    run(tmp_path / "e.jsonl")
    with pytest.raises(RunDirError, match=r"holds another collection: .* was "):
        run(tmp_path / "e.jsonl", resume=True, **change)


@pytest.mark.parametrize(
    "options", [{"reward": "own.py:brief"}, {"workflow": "team.yaml"}], ids=str
)
def test_a_file_that_stored_relative_paths_goes_on(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text("def brief(task, actions):\n    return 1.0\n")
    Path("team.yaml").write_text("shape: critic\nonly: [solver]\n")
    actor = ScriptedActor(lambda agent, text: "Answer: 1")
    known = {"env_id": "mlrl/math-v2", "split": "sample", "actor": actor, "env_options": options}
    path = run(tmp_path / "e.jsonl", **known, tasks=4).path
    records = lines(path)[:2]
    for record in records:
        record["source"]["env_options"].update(options)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    for _ in range(2):
        result = run(path, **known, tasks=4, resume=True)
    assert (result.episodes, result.played) == (4, 0)
    Path("team.yaml").unlink()
    with pytest.raises(RunDirError, match="another collection: env_options was"):
        run(path, **{**known, "env_options": {}}, tasks=4, resume=True)


def test_episodes_of_a_suite_are_not_added_to(tmp_path):
    (tmp_path / "e.jsonl").write_text('{"source": {"env_id": "a"}}\n')
    with pytest.raises(RunDirError, match="not of a collection: KeyError"):
        run(tmp_path / "e.jsonl", resume=True)


def test_a_finished_collection_that_is_resumed_plays_nothing(tmp_path):
    before = run(tmp_path / "e.jsonl").path.read_bytes()
    result = run(tmp_path / "e.jsonl", resume=True)
    assert (result.episodes, result.played) == (4, 0)
    assert result.path.read_bytes() == before


@pytest.mark.parametrize("cut", [1, 40, 700, 1500, 2500, 10_000])
def test_cut_anywhere_and_resumed_the_file_is_as_if_nothing_had_happened(cut, tmp_path):
    model = {"agents": ("left", "right"), "model": "tiny-random", "sampling": {"max_new_tokens": 4}}

    def play(path, **options):
        actor = mlrl_learners.make("magrpo", **model)  # a new process starts anew
        return run(path, actor=actor, samples=2, batch_size=3, **options).path

    whole = play(tmp_path / "whole.jsonl").read_bytes()
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(whole[: min(cut, len(whole))])
    assert play(torn, resume=True).read_bytes() == whole


def test_an_episode_that_infrastructure_broke_is_told_and_not_kept(tmp_path):
    result = run(tmp_path / "e.jsonl", env_options={"broken": True})
    assert (result.played, result.kept, len(result.failures)) == (4, 3, 1)
    with pytest.raises(InfraError, match="no worker"):
        run(tmp_path / "f.jsonl", env_options={"broken": True}, tasks=[3])


@pytest.mark.parametrize("low", [float("nan"), float("inf")])
def test_a_filter_that_keeps_nothing_is_refused_before_anything_is_written(low, tmp_path):
    with pytest.raises(ConfigError, match="filter_reward must be finite"):
        run(tmp_path / "e.jsonl", filter_reward=low)
    assert not (tmp_path / "e.jsonl").exists()


def test_a_number_below_one_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigError, match="samples must be at least 1, got 0"):
        run(tmp_path / "e.jsonl", samples=0)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_how_many_were_kept(tmp_path, capsys):
    out = str(tmp_path / "e.jsonl")
    words = ["collect", ENV_ID, "--actor", "reference", "--filter-reward", "1", "--out", out]
    assert main(words) == 0
    assert capsys.readouterr().out == f"kept 4 of 4 episodes, 4 in {out}\n"
    assert main(words) == 2
    assert "is not empty" in capsys.readouterr().err
    assert main([*words, "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 4


def test_the_command_fails_if_episodes_are_missing(tmp_path, capsys):
    out = str(tmp_path / "e.jsonl")
    words = ["collect", ENV_ID, "--actor", "reference", "--env.broken", "true", "--out", out]
    assert main(words) == 1
    assert "1 left out: no worker" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["--actor", "--out"])
def test_the_command_needs_an_actor_and_a_file(missing, tmp_path, capsys):
    words = {"--actor": "random", "--out": str(tmp_path / "e.jsonl")}
    given = [word for name, value in words.items() if name != missing for word in (name, value)]
    assert main(["collect", ENV_ID, *given]) == 2
    assert missing in capsys.readouterr().err


def test_what_is_no_actor_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ContractError, match="actor must be an object with a method act"):
        run(tmp_path / "e.jsonl", actor="random")
    assert list(tmp_path.iterdir()) == []
