import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema")

from mlrl_learners.cli import main
from mlrl_learners.cli.bench_actors import NamedActor
from mlrl_learners.errors import ConfigError
from mlrl_learners.runs.files import EPISODES_FILE

KILLS = 20
SUITE = """
name: quick
version: 0
summary: a story
seeds: [0, 1]
budget: {turns: 1, tokens: 8}
entries:
  - {env: mlrl/story-v1, split: sample, tasks: 4}
  - {env: mlrl/math-v1, split: sample, tasks: 2}
"""
MANY = """
name: many
version: 0
summary: many short episodes
seeds: [0, 1, 2, 3]
entries:
  - {env: mlrl/story-v1, split: all, budget: {samples: 8}}
  - {env: mlrl/math-v1, split: sample, budget: {samples: 8}}
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "quick.yaml"
    path.write_text(SUITE)
    return str(path)


def bench(suite, actor, folder, *words):
    return main(
        ["bench", "run", "--suite", suite, "--actor", actor, "--run-dir", str(folder), *words]
    )


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
    ],
)
def test_mistakes_are_one_line(words, message, tmp_path, capsys):
    assert main(["bench", "run", *words, "--run-dir", str(tmp_path / "run")]) == 2
    err = capsys.readouterr().err.strip().splitlines()[-1]
    assert message in err
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


def test_identity_follows_options_and_ways():
    plain, warm = (
        NamedActor("tiny-random"),
        NamedActor("tiny-random", {"sampling": {"temperature": 1.0}}),
    )
    assert plain.identity(0) != warm.identity(0)
    assert plain.identity(0) != NamedActor("single:tiny-random").identity(0)
    with pytest.raises(ConfigError, match="pipeline wraps"):
        NamedActor("single:pipeline:")


def test_identity_follows_the_server_and_does_not_name_it():
    one, other = (NamedActor(f"endpoint:m@http://{host}/v1").identity(0) for host in "ab")
    assert one != other
    assert "http" not in json.dumps(one)


def test_identity_follows_how_a_run_samples(tmp_path):
    identities = []
    for temperature in (0.5, 1.0):
        path = tmp_path / f"{temperature}" / "a"
        (path / "checkpoints" / "step_1" / "learner").mkdir(parents=True)
        (path / "checkpoints" / "step_1" / "state.json").write_text("{}")
        (path / "config.yaml").write_text(
            "env: {id: mlrl/story-v1}\n"
            "learner:\n  name: magrpo\n  model: m\n"
            f"  options: {{sampling: {{temperature: {temperature}}}}}\n"
        )
        identities.append(NamedActor(str(path)).identity(0))
    assert identities[0] != identities[1]


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


class TestRescore:
    @pytest.fixture
    def run_dir(self, suite, tmp_path, capsys):
        bench(suite, "random", tmp_path / "run")
        capsys.readouterr()
        return tmp_path / "run"

    def test_nothing_changes_without_a_reason(self, run_dir, capsys):
        assert main(["rescore", str(run_dir)]) == 0
        assert main(["rescore", str(run_dir / "result.json")]) == 0
        assert capsys.readouterr().out.count("12 episodes, every score as it was") == 2

    def test_change_is_named_and_can_be_kept(self, run_dir, tmp_path, capsys):
        path = run_dir / EPISODES_FILE
        first, *rest = [json.loads(line) for line in path.read_text().splitlines()]
        first["turns"][0]["components"]["setup"]["ghost"] = 0.5
        first["returns"]["setup"] += 0.5
        path.write_text("".join(json.dumps(record) + "\n" for record in [first, *rest]))
        mended = tmp_path / "mended.jsonl"
        assert main(["rescore", str(run_dir), "--json", "--write", str(mended)]) == 1
        (change,) = json.loads(capsys.readouterr().out)["changes"]
        assert change["components"] == {"ghost": [0.25, 0.0]}
        assert main(["rescore", str(mended)]) == 0

    def test_result_is_written_anew_with_its_transcripts(self, run_dir, tmp_path, capsys):
        new = tmp_path / "new.json"
        assert main(["rescore", str(run_dir / "result.json"), "--write", str(new)]) == 0
        assert main(["rescore", str(new)]) == 0
        old = json.loads((run_dir / "result.json").read_text())
        assert json.loads(new.read_text())["overall"] == old["overall"]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--env.max_turns", "3"], "has its own options"),
            (["--write", "new"], "--write NAME.json"),
        ],
    )
    def test_what_cannot_be_done_with_a_result_is_refused(self, run_dir, words, message, capsys):
        assert main(["rescore", str(run_dir / "result.json"), *words]) == 2
        assert message in capsys.readouterr().err

    def test_episodes_of_evaluate_need_no_suite(self, tmp_path, capsys):
        file = tmp_path / "episodes.jsonl"
        words = ["--actor", "random", "--split", "sample", "--tasks", "2", "--episodes", str(file)]
        assert main(["evaluate", "mlrl/math-v1", "--env.max_turns", "1", *words]) == 0
        assert main(["rescore", str(file), "--env.max_turns", "1"]) == 0

    def test_what_is_no_episode_is_a_mistake(self, tmp_path, capsys):
        (tmp_path / "x.jsonl").write_text('{"a": 1}\n{}\n')
        assert main(["rescore", str(tmp_path / "x.jsonl")]) == 2
        assert "is not an episode" in capsys.readouterr().err


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


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_kills_lose_nothing_and_double_nothing(tmp_path):
    """Kill a run at random instants and compare with one that nothing disturbed."""
    suite = tmp_path / "many.yaml"
    suite.write_text(MANY)

    def command(folder):
        words = ["bench", "run", "--suite", str(suite), "--actor", "random", "--batch-size", "4"]
        return [sys.executable, "-m", "mlrl_learners", *words, "--run-dir", str(folder)]

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = time.monotonic()
    subprocess.run(command(tmp_path / "whole"), check=True, **quiet)
    whole_seconds = time.monotonic() - started
    draw, kills, grew = random.Random(0), 0, []
    file = tmp_path / "killed" / EPISODES_FILE
    while kills < KILLS:
        run = subprocess.Popen(command(tmp_path / "killed"), start_new_session=True, **quiet)
        before = _size(file)
        # One kill in four comes at any time, before anything is written, too; the others while
        # lines are being written.
        deadline = time.monotonic() + (draw.uniform(0, whole_seconds / 6) if kills % 4 == 0 else 60)
        wanted = before + draw.randrange(60_000)
        while run.poll() is None and time.monotonic() < deadline:
            if _size(file) > wanted:
                break
            time.sleep(0.002)
        if run.poll() is not None:
            break
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        kills += 1
        grew.append(_size(file) - before)
    subprocess.run(command(tmp_path / "killed"), check=True, **quiet)
    whole, killed = _records(tmp_path / "whole"), _records(tmp_path / "killed")
    print(f"{kills} kills, {sum(size > 0 for size in grew)} of them after something was written")
    assert kills == KILLS
    assert len({record["key"] for record in killed}) == len(killed) == len(whole)
    assert killed == whole
    results = [
        json.loads((tmp_path / name / "result.json").read_text()) for name in ("whole", "killed")
    ]
    assert _scores(results[0]) == _scores(results[1])


def _size(file):
    return file.stat().st_size if file.exists() else 0


def _records(folder):
    lines = (folder / EPISODES_FILE).read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [{k: v for k, v in record.items() if k != "seconds"} for record in records]


def _scores(result):
    return [{k: v for k, v in entry.items() if k != "seconds"} for entry in result["entries"]]
