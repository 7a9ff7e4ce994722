import json
from pathlib import Path

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema")
pytest.importorskip("jinja2")

from mlrl_learners.bench.leaderboard import build, check_submission, stale, write
from mlrl_learners.bench.results import read_result, read_transcripts, save_result, write_result
from mlrl_learners.bench.run import RunSettings, play_suite
from mlrl_learners.bench.suite import load_suite, suite_of
from mlrl_learners.errors import ConfigError

ROOT = Path(__file__).parents[3]
SETTINGS = RunSettings()
SCRIPT = "<script>alert('ha')</script>"
ENTRIES = [
    {"env": "mlrl/story-v0", "split": "sample", "tasks": 2, "show_prompts": True},
    {"env": "mlrl/math-v0", "split": "sample", "tasks": 2, "show_prompts": True},
]
MINE = {"name": "mine", "version": 0, "summary": "two", "seeds": [0], "entries": ENTRIES}


@pytest.fixture
def add_result(make_source, tmp_path):
    def add(name, answer="1", suite=MINE, **actor):
        source = make_source(name, answer)
        slug = "".join(c if c.isalnum() else "-" for c in name)
        played = play_suite(suite_of(suite), source, tmp_path / "runs" / slug, SETTINGS)
        path = tmp_path / "results" / suite["name"] / f"{slug}.json"
        write_result(path, suite_of(suite), {**source.describe(), **actor}, played, SETTINGS)
        return path

    return add


def test_same_results_give_the_same_bytes(add_result, tmp_path):
    add_result("a")
    add_result("b", "x" * 50)
    assert build(tmp_path / "results") == build(tmp_path / "results")


def test_what_was_written_is_fresh_until_a_result_changes(add_result, tmp_path):
    add_result("a")
    pages, out = build(tmp_path / "results"), tmp_path / "out"
    write(pages, out)
    assert stale(pages, out) == []
    add_result("b")
    assert stale(build(tmp_path / "results"), out) == [
        "LEADERBOARD.md is stale",
        "index.html is stale",
        "transcripts/mine--b.html is missing",
    ]


def test_transcripts_of_results_that_are_gone_are_removed(add_result, tmp_path):
    add_result("a")
    path = add_result("b")
    out = tmp_path / "out"
    write(build(tmp_path / "results"), out)
    path.unlink()
    pages = build(tmp_path / "results")
    assert "transcripts/mine--b.html has no result" in stale(pages, out)
    write(pages, out)
    assert stale(pages, out) == []


def test_text_of_models_and_users_is_shown_and_never_run(add_result, tmp_path):
    add_result(f"a|{SCRIPT}\n[x](javascript:y)", SCRIPT, note=SCRIPT)
    pages = build(tmp_path / "results")
    for path, text in pages.items():
        assert "<script>alert" not in text, path
    transcript = next(text for path, text in pages.items() if path.startswith("transcripts/"))
    assert "&lt;script&gt;alert(&#39;ha&#39;)" in transcript
    row = next(line for line in pages["LEADERBOARD.md"].splitlines() if "transcripts/" in line)
    assert row.count(" | ") == 5
    assert r"\[x\](javascript:y)" in row


def test_pages_allow_no_network(add_result, tmp_path):
    add_result("a")
    for path, text in build(tmp_path / "results").items():
        if path.endswith(".html"):
            assert "default-src 'none'" in text
            assert "http://" not in text.replace("http-equiv", "")
            assert "https://" not in text


def test_partial_results_are_not_compared_as_a_whole(add_result, tmp_path):
    add_result("all")
    add_result("some", suite={**MINE, "entries": ENTRIES[:1]})
    text = build(tmp_path / "results")["LEADERBOARD.md"]
    whole, story, *_ = text.split("### ")[1:]
    assert "[all]" in whole
    assert "[some]" not in whole
    assert "Not here: some: 1 of 2 environments" in whole
    assert "[some]" in story


def test_best_mean_comes_first(add_result, tmp_path):
    add_result("worse", "")
    add_result("better", "The answer is 4.")
    path = add_result("best")
    result = read_result(path)
    for entry in result["entries"]:
        entry["mean"] = 0.9
    save_result(path, {**result}, read_transcripts(path, result))
    text = build(tmp_path / "results")["LEADERBOARD.md"].split("### ")[2]
    assert text.index("[best]") < text.index("[worse]")


def test_one_actor_has_one_result_a_suite(add_result, tmp_path):
    path = add_result("a")
    path.with_name("again.json").write_text(path.read_text())
    with pytest.raises(ConfigError, match="are of one actor, a"):
        build(tmp_path / "results")


def test_no_result_is_a_mistake(tmp_path):
    with pytest.raises(ConfigError, match="no results below"):
        build(tmp_path)


def test_the_committed_leaderboard_is_fresh():
    assert stale(build(ROOT / "benchmarks/results"), ROOT / "benchmarks/leaderboard") == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks/results").rglob("*.*")), ids=lambda path: path.name
)
def test_committed_results_are_small(path):
    assert path.stat().st_size < 1_000_000


class TestSubmission:
    @pytest.fixture
    def submission(self, add_result):
        suite = load_suite("smoke").only(["mlrl/story-v0", "mlrl/math-v0"])
        return add_result("theirs", "The fox. ANSWER: 3", suite=suite.as_dict())

    def forge(self, path, change):
        result = read_result(path)
        episodes = read_transcripts(path, result)
        change(result, episodes)
        save_result(path, result, episodes)

    def test_honest_result_is_accepted(self, submission):
        assert check_submission(submission) == []

    def test_figures_that_do_not_follow_are_found(self, submission):
        self.forge(submission, lambda result, _: result["entries"][0].update(mean=1.0))
        assert any("mean does not follow" in problem for problem in check_submission(submission))

    def test_forged_scores_are_found_by_scoring_anew(self, submission):
        def forge(result, episodes):
            for episode in episodes:
                episode["turns"][-1]["components"] = {
                    a: {"forged": 1.0} for a in episode["returns"]
                }

        self.forge(submission, forge)
        assert any("scored here" in problem for problem in check_submission(submission))

    def test_left_out_failures_are_found(self, submission):
        self.forge(submission, lambda result, _: result["entries"][0].update(planned=1))
        assert any("the suite asks for 2" in problem for problem in check_submission(submission))

    def test_doubled_episodes_are_found(self, submission):
        self.forge(submission, lambda _, episodes: episodes.append(episodes[0]))
        assert "an episode appears twice" in check_submission(submission)

    def test_other_suite_under_our_name_is_found(self, submission):
        def forge(result, _):
            result["suite"]["entries"][0]["budget"]["tokens"] = 4096

        self.forge(submission, forge)
        problems = check_submission(submission)
        assert any("the suite's hash is" in problem for problem in problems)
        assert any("is not that of our suite" in problem for problem in problems)

    def test_suite_of_ones_own_is_not_ours(self, add_result):
        assert any("none of our suites" in p for p in check_submission(add_result("a")))

    def test_other_transcripts_are_refused(self, submission):
        result = json.loads(submission.read_text())
        submission.with_name(result["transcripts"]["file"]).write_bytes(b"{}")
        with pytest.raises(ConfigError, match="SHA-256"):
            check_submission(submission)
