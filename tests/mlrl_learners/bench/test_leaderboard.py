import json
from pathlib import Path

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema")
pytest.importorskip("jinja2")

from mlrl_learners.actors import ReferenceActor
from mlrl_learners.bench import statistics, transcripts
from mlrl_learners.bench.leaderboard import build, check_submission, stale, write
from mlrl_learners.bench.leaderboard.build import UNKNOWN
from mlrl_learners.bench.results import (
    figures_of,
    overall_of,
    read_result,
    read_transcripts,
    save_result,
    write_result,
)
from mlrl_learners.bench.run import RunSettings, play_suite
from mlrl_learners.bench.suite import Entry, load_suite, suite_of
from mlrl_learners.errors import ConfigError

ROOT = Path(__file__).parents[3]
SETTINGS = RunSettings()
SCRIPT = "<script>alert('ha')</script>"
ENTRIES = [
    {"env": "mlrl/story-v0", "split": "sample", "tasks": 2, "show_prompts": True},
    {"env": "mlrl/math-v0", "split": "sample", "tasks": 2, "show_prompts": True},
]
MINE = {"name": "mine", "version": 0, "summary": "two", "seeds": [0], "entries": ENTRIES}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Intervals of few draws: that they follow is checked, not how wide they are."""
    monkeypatch.setattr(statistics, "RESAMPLES", 9)


@pytest.fixture
def add_result(make_source, tmp_path):
    def add(name, answer="1", suite=MINE, make=None, **actor):
        source = make_source(name, answer)
        source.make = make or source.make
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


@pytest.mark.parametrize("change", [{"data": "0" * 64}, {"options": {"reward": "paper"}}])
def test_what_was_not_played_alike_is_not_put_side_by_side(add_result, tmp_path, change):
    add_result("a")
    path = add_result("b")
    result = read_result(path)
    result["entries"][0].update(change)
    path.write_text(json.dumps(result))
    with pytest.raises(ConfigError, match=f"has another {next(iter(change))} than mine/a.json"):
        build(tmp_path / "results")


def test_why_somebody_is_absent_is_said(add_result, tmp_path):
    add_result("a")
    path = add_result("b")
    result = read_result(path)
    empty = {"episodes": 0, "missing": 2, "returns": {}, "solved": {}, "tokens": 0}
    result["entries"][0].update(empty)
    path.write_text(json.dumps(result))
    text = build(tmp_path / "results")["LEADERBOARD.md"]
    assert "b: 2 episodes missing" in text
    assert "no reference" not in text


def test_tokens_that_nobody_counted_are_not_free(add_result, tmp_path):
    add_result("mute")
    pages = build(tmp_path / "results")
    assert "<svg" not in pages["index.html"]
    row = next(line for line in pages["LEADERBOARD.md"].splitlines() if "[mute]" in line)
    assert row.split(" | ")[4] == UNKNOWN


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


def forge_components(_, episodes):
    for episode in episodes:
        episode["turns"][-1]["components"] = {a: {"forged": 1.0} for a in episode["returns"]}


def forge_rewards(episode):
    """An episode whose sums are right and whose rewards are not."""
    for agent in episode["returns"]:
        episode["turns"][0]["rewards"][agent] += 0.5
        episode["returns"][agent] += 0.5
    episode["return"] += 0.5


def forge_left_out(result, episodes):
    del episodes[1]
    result["entries"][0]["left_out"] = 1
    refigure(result, episodes)


def forge_copies(result, episodes):
    first = next(e for e in episodes if e["entry"] == result["entries"][0]["name"])
    for place, episode in enumerate(episodes):
        if episode["entry"] == first["entry"]:
            episodes[place] = {**first, "key": episode["key"]}
    refigure(result, episodes)


def forge_tokens(result, episodes):
    for turn in episodes[0]["turns"]:
        turn["tokens"] = dict.fromkeys(turn["tokens"], 65)
    refigure(result, episodes)


def forge_returns(result, episodes):
    for episode in episodes:
        episode["return"] = 1.0
    refigure(result, episodes)


def forge_all_rewards(result, episodes):
    for episode in episodes:
        forge_rewards(episode)
    refigure(result, episodes)


def refigure(result, episodes):
    """Let every figure follow from the forged episodes."""
    for entry in result["entries"]:
        entry.update(figures_of([e for e in episodes if e["entry"] == entry["name"]]))
    result["overall"] = overall_of(result["entries"])


def forge_entry(**values):
    return lambda result, _: result["entries"][0].update(values)


def forge_overall(**values):
    return lambda result, _: result["overall"].update(values)


FORGERIES = {
    "mean": (forge_entry(mean=1.0), ": mean does not follow"),
    "interval": (forge_entry(interval=[0.8, 0.9]), ": interval does not follow"),
    "iqm interval": (forge_entry(iqm_interval=[0.8, 0.9]), ": iqm_interval does not follow"),
    "components": (forge_entry(components={"cheat": 5.0}), ": components does not follow"),
    "agent returns": (forge_entry(agent_returns={}), ": agent_returns does not follow"),
    "pass at k": (forge_entry(pass_at_k={"1": 1.0}), ": pass_at_k does not follow"),
    "seconds": (forge_entry(seconds=99.0), ": seconds does not follow"),
    "overall mean": (forge_overall(mean=9.9), "overall: mean does not follow"),
    "overall tokens": (forge_overall(tokens=1), "overall: tokens does not follow"),
    "overall unknown": (forge_overall(best=1), "overall: best does not follow"),
    "budget": (forge_entry(budget={"turns": 1, "tokens": 1, "samples": 1}), "budget is"),
    "data": (forge_entry(data="0" * 64), "data is"),
    "agents": (forge_entry(agents=["me"]), "agents is"),
    "planned": (forge_entry(planned=1), "planned is 1, it must be 2"),
    "return": (forge_returns, "return does not follow from its rewards"),
    "rewards": (forge_all_rewards, "rewards of "),
    "components of turns": (forge_components, "scored here"),
    "left out": (forge_left_out, "left_out is 1, it must be 0"),
    "copies": (forge_copies, "1 episodes that the suite asks for are missing"),
    "doubled": (lambda _, e: e.append(e[0]), "1 episodes are doubled"),
    "tokens": (forge_tokens, "has 65 tokens, the budget is 64"),
}


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

    @pytest.mark.parametrize(("forge", "problem"), FORGERIES.values(), ids=FORGERIES)
    def test_forgeries_are_found(self, submission, forge, problem):
        self.forge(submission, forge)
        assert [p for p in check_submission(submission) if problem in p]

    def test_all_is_scored_anew_where_other_code_has_scored(self, submission):
        def forge(result, episodes):
            result["entries"][0]["scorers"] = ["0" * 64]
            forge_components(result, episodes)

        self.forge(submission, forge)
        for seed in range(3):
            found = check_submission(submission, sample=1, seed=seed)
            assert len([p for p in found if p.startswith("mlrl/story") and "scored here" in p]) == 2

    def test_sample_is_drawn_by_the_checker(self, submission):
        self.forge(submission, lambda _, episodes: forge_rewards(episodes[0]))
        found = [
            any("scored here" in p for p in check_submission(submission, sample=1, seed=seed))
            for seed in range(6)
        ]
        assert any(found)
        assert not all(found)

    def test_reference_leaves_out_tasks_without_a_reference_alone(self, add_result):
        suite = load_suite("smoke").only(["mlrl/story-v0"])

        def refuse(agents, **_):
            return ReferenceActor()

        path = add_result("theirs", suite=suite.as_dict(), make=refuse, base="reference")
        assert check_submission(path) == []

    def test_files_options_make_no_environment(self, submission, monkeypatch):
        def forge(result, _):
            result["suite"]["entries"][0]["options"] = {"data_path": "/nowhere"}

        self.forge(submission, forge)
        monkeypatch.setattr(Entry, "make_env", lambda _: pytest.fail("made"))
        assert check_submission(submission)

    def test_file_that_grows_without_end_is_refused(self, submission, monkeypatch):
        monkeypatch.setattr(transcripts, "LARGEST", 100)
        with pytest.raises(ConfigError, match="holds more than"):
            check_submission(submission)

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
