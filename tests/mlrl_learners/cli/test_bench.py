import json
from pathlib import Path

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema_rs")

from mlrl_learners.cli import main
from mlrl_learners.runs import lock
from mlrl_learners.runs.files import EPISODES_FILE
from tests.mlrl_learners.cli.bench_runs import SUITE, bench


def test_list_names_every_suite(capsys):
    assert main(["bench", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"smoke", "writing", "coding", "completion", "reasoning"} <= set(found)


def test_run_prints_a_table_and_goes_on(suite, tmp_path, capsys):
    assert bench(suite, "random", tmp_path / "run") == 0
    assert "mlrl/story-v1:sample" in capsys.readouterr().out
    before = (tmp_path / "run" / EPISODES_FILE).read_text()
    assert bench(suite, "random", tmp_path / "run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["overall"]["episodes"] == 12
    assert (tmp_path / "run" / EPISODES_FILE).read_text() == before


@pytest.mark.parametrize("name", ["..", "\U0001f389"])
def test_an_actor_named_without_letters_has_a_folder_inside_that_of_the_suite(
    suite, name, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = ["bench", "run", "--suite", suite, "--actor", "random", "--name", name]
    assert main([*words, "--only", "mlrl/math-v2"]) == 0
    (episodes,) = Path("runs/bench").rglob(EPISODES_FILE)
    assert episodes.parent.parent == Path("runs/bench/quick-v0")


def test_the_name_in_a_result_of_somebody_else_does_not_control_the_terminal(
    suite, tmp_path, capsys
):
    results = [tmp_path / "one.json", tmp_path / "other.json"]
    for path, env_id in zip(results, ("mlrl/math-v2", "mlrl/story-v1"), strict=True):
        words = ["--only", env_id, "--out", str(path)]
        assert bench(suite, "random", tmp_path / path.stem, *words) == 0
        path.write_text(path.read_text().replace(f'"name": "{env_id}', '"name": "\\u001b[2J'))
    capsys.readouterr()
    assert main(["bench", "compare", *map(str, results)]) == 2
    assert main(["bench", "compare", *map(str, results[:1] * 2)]) == 0
    assert "\x1b" not in "".join(capsys.readouterr())


def test_a_run_takes_over_episodes_of_an_earlier_result(suite, tmp_path, capsys):
    words = ["--out", str(tmp_path / "earlier.json"), "--only", "mlrl/story-v1"]
    assert bench(suite, "random", tmp_path / "one", *words) == 0
    capsys.readouterr()
    words = ["--reuse", str(tmp_path / "earlier.json"), "--json"]
    assert bench(suite, "random", tmp_path / "two", *words) == 0
    printed = capsys.readouterr()
    reused = json.loads((tmp_path / "earlier.json").read_text())["overall"]["episodes"]
    assert f"{reused} episodes" in printed.err
    result = json.loads(printed.out)
    assert result["complete"]
    assert result["overall"]["episodes"] == 12
    assert bench(suite, "reference", tmp_path / "three", *words) == 2
    assert "is of another actor" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--suite", "smok", "--actor", "random"], "did you mean 'smoke'"),
        (["--suite", "smoke", "--actor", "randm"], "did you mean 'random'"),
        (["--suite", "smoke", "--actor", "random", "--only", "mlrl/stori-v0"], "unknown entry"),
        (["--suite", "smoke", "--actor", "pipeline:"], "pipeline wraps another actor"),
        (
            ["--suite", "smoke", "--actor", "random", "--learner.max_new_tokens", "9"],
            "the suite's budget",
        ),
        (["--suite", "smoke", "--actor", "random", "--learner.nonsense", "5"], "takes no options"),
        (["--suite", "smoke", "--actor", "tiny", "--learner.name", "ippo"], "leave --learner.name"),
        (["--suite", "smoke", "--actor", "tiny", "--learner.model", "b"], "leave --learner.model"),
    ],
)
def test_mistakes_are_one_line(words, message, tmp_path, capsys):
    assert main(["bench", "run", *words, "--run-dir", str(tmp_path / "run")]) == 2
    err = capsys.readouterr().err.strip().splitlines()[-1]
    assert message in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("actor", "words", "message"),
    [
        ("random", ["--out", "/proc/nowhere/a.json"], "cannot write '/proc/nowhere'"),
        ("random", ["--out", "."], "is a folder"),
        ("random", ["--out", "my result.json"], "is named by letters, digits"),
        ("script:nash", [], "has no scripted players"),
        ("tiny-random", ["--learner.sampling.nonsense", "1"], "nonsense"),
        ("tiny-randm", [], "did you mean 'tiny-random'"),
    ],
)
def test_mistakes_are_found_before_a_folder_is_made(actor, words, message, suite, tmp_path, capsys):
    assert bench(suite, actor, tmp_path / "run", *words) in (1, 2)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_models_and_ways_of_playing_keep_to_the_budget(suite, tmp_path, capsys):
    assert bench(suite, "discussion:tiny-random", tmp_path / "run", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["actor"]["way"] == "discussion"
    assert result["entries"][0]["budget"]["tokens"] == 8
    assert 0 < result["entries"][0]["tokens"] <= 8 * 2 * 2 * 8  # drafts, two agents, episodes


def test_endpoint_plays_within_the_budget(suite, tmp_path, capsys, chat_server):
    actor = f"endpoint:some-model@{chat_server.url}"
    assert bench(suite, actor, tmp_path / "run", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert {request["max_tokens"] for request in chat_server.requests} == {8}
    assert result["overall"]["tokens"] == 2 * 24
    assert result["actor"]["name"] == "endpoint:some-model"
    assert chat_server.url not in json.dumps(result)


def test_endpoint_that_fails_is_no_zero_and_is_redone(suite, tmp_path, capsys, chat_server):
    actor = f"endpoint:some-model@{chat_server.url}"
    good = chat_server.answer
    chat_server.answer = lambda request: (
        (500, {"error": {"message": "overloaded"}})
        if len(chat_server.requests) % 5 == 0
        else good(request)
    )
    words = ["--learner.max_retries", "0", "--attempts", "1"]
    assert bench(suite, actor, tmp_path / "run", "--json", *words) == 1
    out, err = capsys.readouterr()
    broken = json.loads(out)
    assert not broken["complete"]
    assert broken["failures"][0]["error"] == "EndpointError"
    assert "are missing" in err
    assert "run the same command again" in err
    chat_server.answer = good
    assert bench(suite, actor, tmp_path / "run", "--json", *words) == 0
    mended = json.loads(capsys.readouterr().out)
    assert mended["complete"]
    assert mended["failures"] == []


def test_a_game_whose_measures_fail_is_not_complete_and_is_measured_on_resume(
    tmp_path, capsys, chat_server
):
    suite = tmp_path / "games.yaml"
    suite.write_text(
        "name: two\nversion: 0\nsummary: s\nseeds: [0]\nbudget: {turns: null, tokens: 4}\n"
        "entries:\n  - {env: mlrl/kuhn-v0, split: sample, tasks: 2}\n"
    )
    actor, good = f"endpoint:some-model@{chat_server.url}", chat_server.answer
    words = ["--learner.max_retries", "0", "--json"]
    assert bench(str(suite), actor, tmp_path / "run", "--no-measures", *words) == 0
    chat_server.answer = lambda request: (500, {"error": {"message": "overloaded"}})
    assert bench(str(suite), actor, tmp_path / "run", *words) == 1
    err = capsys.readouterr().err
    assert "mlrl: measures of mlrl/kuhn-v0:sample are missing: measures: " in err
    chat_server.answer = good
    assert bench(str(suite), actor, tmp_path / "run", *words) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["complete"]
    assert "nash_conv" in result["entries"][0]["measures"]["figures"]


def test_a_second_run_in_the_folder_of_a_run_is_one_line(suite, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(lock, "SECONDS", 0.0)
    with lock.hold_folder(tmp_path / "run"):
        assert bench(suite, "random", tmp_path / "run") == 2
    assert "is written by another run that has not ended" in capsys.readouterr().err
    assert bench(suite, "random", tmp_path / "run") == 0


def test_server_that_is_down_ends_soon(suite, tmp_path, capsys, dead_url):
    words = ["--learner.max_retries", "0"]
    assert bench(suite, f"endpoint:m@{dead_url}", tmp_path / "run", *words) == 1
    assert "12 episodes are missing: endpoint" in capsys.readouterr().err


def test_trained_run_is_held_to_the_budget_and_says_what_it_is(suite, tmp_path, capsys):
    run_dir = tmp_path / "magrpo-0"
    config = tmp_path / "train.yaml"
    config.write_text(
        "env: {id: mlrl/story-v1}\n"
        "learner:\n  name: magrpo\n  model: tiny-random\n"
        "  options: {group: {size: 2}, sampling: {max_new_tokens: 4}}\n"
        "train: {iterations: 1, tasks_per_iteration: 1}\n"
    )
    assert main(["train", str(config), "--run-dir", str(run_dir)]) == 0
    capsys.readouterr()
    seeds = tmp_path / "one-seed.yaml"
    seeds.write_text(SUITE.replace("[0, 1]", "[0]"))
    words = ["--only", "mlrl/story-v1", "--json"]
    assert bench(str(seeds), f"{tmp_path}/magrpo-{{seed}}", tmp_path / "run", *words) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["actor"]["name"] == "magrpo-{seed}"
    (trained,) = result["actor"]["trained"]
    assert (trained["learner"], trained["env"], trained["iterations"]) == (
        "magrpo",
        "mlrl/story-v1",
        1,
    )
    assert len(result["actor"]["weights"][0]) == 64
    assert str(tmp_path) not in json.dumps(result)
    assert bench(str(seeds), str(run_dir), tmp_path / "other") == 2
    assert "was trained for the agents" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


class TestCompare:
    def test_prints_intervals_and_p_value(self, suite, tmp_path, capsys):
        for actor in ("random", "tiny-random"):
            bench(suite, actor, tmp_path / actor)
        paths = [str(tmp_path / actor / "result.json") for actor in ("random", "tiny-random")]
        capsys.readouterr()
        assert main(["bench", "compare", *paths]) == 0
        out, err = capsys.readouterr()
        assert "P(better)" in out
        assert "tokens an episode" in err
        assert main(["bench", "compare", *paths, "--json"]) == 0
        assert set(json.loads(capsys.readouterr().out)) >= {"overall", "entries", "warnings"}


def test_leaderboard_is_built_and_checked(suite, tmp_path, capsys):
    pytest.importorskip("jinja2")
    results, out = tmp_path / "results", tmp_path / "out"
    bench(suite, "random", tmp_path / "run", "--out", str(results / "random.json"))
    words = ["leaderboard", "build", str(results), "--out", str(out)]
    assert main([*words, "--check"]) == 1
    assert main(words) == 0
    assert main([*words, "--check"]) == 0
    submit = ["leaderboard", "submit", "--check", str(results / "random.json"), "--json"]
    capsys.readouterr()
    assert main(submit) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert "none of our suites" in problem
