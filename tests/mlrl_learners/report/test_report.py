import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlrl_learners.errors import RunDirError
from mlrl_learners.report import render_report, write_report
from mlrl_learners.runs.stored_run import read_run

NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>]]>\"'&amp;\ud800\x00"


def an_episode(text: str = "words", total: float = 0.5) -> dict:
    turn = {
        "observations": {"aux": "task " + text, "main": "task"},
        "actions": {"aux": text, "main": f"```python\n{text}\n```"},
        "rewards": {"aux": total, "main": total},
        "components": {"aux": {"tests": total}, "main": {"tests": total}},
        "diagnostics": {"aux": {"message": text}},
    }
    return {
        "task_id": f"T/{text[:80]}",
        "seed": 3,
        "return": total,
        "solved": True,
        "turns": [turn, turn],
    }


def an_evaluation(iteration: int, mean: float, text: str = "words") -> dict:
    return {
        "iteration": iteration,
        "env_id": "mlrl/story-v1",
        "split": "eval",
        "mean_return": mean,
        "interval": [mean - 0.1, mean + 0.1],
        "solved_rate": 0.5,
        "components": {text[:80]: mean},
        "episodes": [an_episode(text, mean)],
    }


def a_rollout(iteration: int, text: str = "words") -> dict:
    leaf = {"samples": {"aux": 1}, "rewards": {"aux": 1.0}, "components": {}, "child": None}
    answers = [{"text": "no", "tokens": 1}, {"text": text, "tokens": 2}]
    child = {"turn": 1, "observations": {"aux": text}, "completions": {"aux": answers}}
    child["steps"] = [{**leaf, "solved": True}]
    node = {"turn": 0, "observations": {"aux": "start"}, "completions": {"aux": answers}}
    node["steps"] = [leaf, {**leaf, "child": child}]
    return {"iteration": iteration, "rollout": 0, "task_id": "T/1", "seed": 1, "node": node}


def fill(run_dir, text: str = "words") -> None:
    def write(name, rows):
        (run_dir / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    metrics = [
        {"iteration": i, "seconds": 2.0, "train/return": i / 10, "aux/loss": 0.1} for i in (1, 2, 3)
    ]
    write("metrics.jsonl", metrics)
    write("evaluations.jsonl", [an_evaluation(0, 0.2, text), an_evaluation(3, 0.6, text)])
    write("episodes.jsonl", [a_rollout(1, text), a_rollout(2, text), a_rollout(3, text)])
    (run_dir / "config.yaml").write_text("name: words\n")


def test_the_report_shows_figures_curves_and_transcripts(tmp_path):
    fill(tmp_path)
    document = write_report(tmp_path).read_text()
    for shown in ("0.2 → 0.6", "3.00", "before training", "after 3 iterations", "T/words"):
        assert shown in document
    assert document.count("<polyline") >= 3


def test_nothing_a_model_writes_becomes_markup(tmp_path):
    fill(tmp_path, NASTY)
    for name in ("config.yaml", "environment.json"):
        (tmp_path / name).write_text("</pre><script>alert(3)</script>")
    document = write_report(tmp_path).read_text()
    assert "<script" not in document
    assert "<img" not in document
    assert "&lt;script&gt;alert(1)" in document


def test_the_file_asks_for_nothing_from_outside(tmp_path):
    fill(tmp_path)
    document = write_report(tmp_path).read_text()
    assert not re.search(r"""(src|href)=|url\(|@import|https?://""", document)


def test_an_empty_run_directory_has_a_report(tmp_path):
    assert "Nothing yet" in write_report(tmp_path).read_text()


def test_a_folder_of_runs_is_one_line(tmp_path):
    (tmp_path / "runs/a").mkdir(parents=True)
    (tmp_path / "runs/a/config.yaml").write_text("")
    with pytest.raises(RunDirError, match=r"give one of its runs, such as '.*runs/a'"):
        write_report(tmp_path / "runs")
    with pytest.raises(RunDirError, match="is not the folder of a run"):
        write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_foreign_lines_are_counted_and_left_out_and_torn_ones_left_out(tmp_path):
    fill(tmp_path)
    for name in ("metrics.jsonl", "evaluations.jsonl", "episodes.jsonl"):
        with (tmp_path / name).open("a") as file:
            file.write('[1, 2]\nnull\n{"iteration": 4, "train/ret')
    run = read_run(tmp_path)
    assert run.unreadable == 6
    assert [row.iteration for row in run.iterations] == [1, 2, 3]
    assert "could not be read" in render_report(run)


def test_only_the_ends_of_a_long_run_are_parsed(tmp_path, monkeypatch):
    rows = [a_rollout(i, f"of {i}") | {"rollout": k} for i in range(1, 40) for k in range(20)]
    lines = [*map(json.dumps, rows), '{"iteration": 40, "rollout": 0, ']
    (tmp_path / "episodes.jsonl").write_text("\n".join(lines))
    parsed, parse = [], json.loads
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(text) or parse(text))
    run = read_run(tmp_path)
    assert len(parsed) <= 2 * 8 + 1
    assert (len(run.first_episodes), len(run.last_episodes)) == (8, 8)
    assert "of 39" in str(run.last_episodes)


def test_metrics_that_are_not_finite_are_left_out(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 1, "train/return": NaN, "x": 1}\n')
    assert dict(read_run(tmp_path).iterations[0].metrics) == {"x": 1.0}


def test_an_iteration_written_twice_counts_once(tmp_path):
    rows = [{"iteration": 1, "x": 1}, {"iteration": 1, "x": 2}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [row.metrics["x"] for row in read_run(tmp_path).iterations] == [2.0]


def test_training_samples_follow_the_branch_that_goes_on(tmp_path):
    fill(tmp_path)
    run = read_run(tmp_path)
    (episode,) = run.last_episodes
    assert [turn.actions["aux"] for turn in episode.turns] == ["words", "words"]
    assert episode.solved
    assert episode.team_return == 2.0


def test_only_the_first_and_last_iteration_are_kept(tmp_path):
    fill(tmp_path)
    with (tmp_path / "episodes.jsonl").open("a") as file:
        file.writelines(json.dumps(a_rollout(9, "last")) + "\n" for _ in range(100))
    run = read_run(tmp_path)
    assert len(run.first_episodes) == 1
    assert {episode.turns[0].actions["aux"] for episode in run.last_episodes} == {"last"}
    assert len(run.last_episodes) <= 8


def test_long_texts_are_cut_with_a_note(tmp_path):
    fill(tmp_path, "x" * 100_000)
    document = write_report(tmp_path).read_text()
    assert "characters more" in document
    assert len(document) < 400_000


def test_a_missing_run_directory_is_one_clear_error(tmp_path):
    with pytest.raises(RunDirError, match="no run directory"):
        write_report(tmp_path / "nothing")


def test_a_report_is_not_written_through_a_link(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("mine")
    (tmp_path / "run").mkdir()
    for name in ("report.html", "report.html.partial"):
        (tmp_path / "run" / name).symlink_to(kept)
    assert write_report(tmp_path / "run").read_text().startswith("<!doctype html>")
    assert kept.read_text() == "mine"


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["iteration", "mean_return", "env_id", "episodes", "turns", "node", "steps",
                     "task_id", "return", "seed", "interval", "actions", "rewards", "completions"]
                ),
                inner,
                max_size=6,
            )
        ),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_json_in_any_file_still_gives_a_report(tmp_path_factory, value):
    run_dir = tmp_path_factory.mktemp("run")
    for name in ("metrics.jsonl", "evaluations.jsonl", "episodes.jsonl"):
        (run_dir / name).write_text(json.dumps(value) + "\n")
    assert write_report(run_dir).read_text().startswith("<!doctype html>")
