import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema")
pytest.importorskip("jinja2")

from mlrl_learners.bench.leaderboard import build, stale, write
from mlrl_learners.bench.leaderboard.build import UNKNOWN
from mlrl_learners.bench.leaderboard.overview import main_result, overview_rows
from mlrl_learners.bench.leaderboard.rows import LeaderboardGroup, LeaderboardRow
from mlrl_learners.bench.results import read_result, read_transcripts, save_result
from mlrl_learners.errors import ConfigError

ROOT = Path(__file__).parents[3]
SCRIPT = "<script>alert('ha')</script>"
pytestmark = pytest.mark.usefixtures("quick")


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


def test_html_pages_are_optional(add_result, tmp_path):
    add_result("a")
    pages, out = build(tmp_path / "results"), tmp_path / "out"
    out.mkdir()
    assert stale(pages, out) == ["LEADERBOARD.md is missing"]
    (out / "LEADERBOARD.md").write_text(pages["LEADERBOARD.md"], "utf-8")
    assert stale(pages, out) == []


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
    row = next(line for line in pages["LEADERBOARD.md"].splitlines() if "../results/" in line)
    assert row.count(" | ") == 5
    assert r"\[x\](javascript:y)" in row


def test_pages_allow_no_network(add_result, tmp_path):
    add_result("a")
    for path, text in build(tmp_path / "results").items():
        if path.endswith(".html"):
            assert "default-src 'none'" in text
            assert "http://" not in text.replace("http-equiv", "")
            assert "https://" not in text


def test_partial_results_are_not_compared_as_a_whole(add_result, two_environments, tmp_path):
    add_result("all")
    add_result("some", suite={**two_environments, "entries": two_environments["entries"][:1]})
    text = build(tmp_path / "results")["LEADERBOARD.md"]
    whole, story, *_ = text.split("### ")[1:]
    assert "[all]" in whole
    assert "[some]" not in whole
    assert "Not here: some: 1 of 2 environments" in whole
    assert "[some]" in story


def test_the_main_result_sets_the_best_trained_actor_beside_the_best_other_team():
    def row(actor, mean, **more):
        return LeaderboardRow(actor, "", mean, (mean, mean), mean, None, 0.0, 1, None, None, 0.0,
                              "", "", "", is_complete=True, **more)  # fmt: skip

    rows = (
        row("oracle", 1.0, bound="reference"),
        row("trained: a", 0.5, is_trained=True),
        row("trained: b", 0.4, is_trained=True),
        row("team", 0.3),
    )
    group = LeaderboardGroup("s v1", "", "env:eval", "", rows)
    said = main_result([group])
    assert said.startswith("A team trained with a earns 0.500 (95 %: 0.500 to 0.500) on env:eval")
    assert said.endswith("team (team) 0.300 (95 %: 0.300 to 0.300).")
    assert main_result([replace(group, rows=rows[3:])]) is None
    cells = overview_rows([group])
    assert list(cells) == ["trained: a", "trained: b", "team", "oracle"]
    assert [cell.is_best for row in cells.values() for cell in row.values()] == [
        True, False, False, False,
    ]  # fmt: skip


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


def test_every_trained_actor_has_a_row_in_a_main_table():
    page = build(ROOT / "benchmarks/results")["index.html"]
    trained = {"yes": set(), "no": set()}
    for section in page.split("<section ")[1:]:
        is_main = re.search(r'data-main="(\w+)"', section)[1]
        for row in section.split("<tr data-actor=")[1:]:
            if "trained by" in row.partition("</tr>")[0]:
                trained[is_main].add(row.partition(">")[0])
    assert trained["yes"]
    assert trained["no"] <= trained["yes"]


def test_every_link_of_the_committed_leaderboard_leads_to_a_file():
    page = ROOT / "benchmarks/leaderboard/LEADERBOARD.md"
    links = re.findall(r"\]\((.*?)\)", page.read_text("utf-8"))
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks/results").rglob("*.*")), ids=lambda path: path.name
)
def test_committed_results_are_small(path):
    assert path.stat().st_size < 1_000_000
