"""Pages and texts made from one episode, and folders that hold no training."""

import json

import pytest

from mlrl_learners.monitor.index import EpisodeIndex
from mlrl_learners.monitor.library import Library
from mlrl_learners.monitor.query import Query


@pytest.fixture
def two(run, other_run, rows):
    run.train(1)
    run.play(1, rows.rollout(text="a red fox", task="T/1"))
    other_run.play(1, rows.rollout(text="a blue fox", task="T/1"))
    other_run.play(2, rows.rollout(text="a green fox", task="T/1"))
    return run


def test_a_task_is_compared_with_its_last_episode_in_another_run(served, ask, two):
    status, _, text = ask(f"{served}/compare?run=first&key=0&other=second")
    assert status == 200
    assert "<mark>red</mark>" in text
    assert "<mark>green</mark>" in text
    assert "blue" not in text


def test_a_task_that_the_other_run_has_not_is_named(served, ask, two, other_run, rows):
    two.play(2, rows.rollout(task="T/only"))
    status, _, text = ask(f"{served}/compare?run=first&key=1&other=second")
    assert status == 404
    assert "second has no training episode of T/only" in text


def test_an_episode_is_exported_as_markdown_and_json(served, ask, two):
    status, headers, text = ask(f"{served}/markdown?run=first&key=0")
    assert (status, headers["content-type"]) == (200, "text/markdown; charset=utf-8")
    assert text.startswith("# T/1\n")
    assert "a red fox" in text
    assert "default-src 'none'" in headers["content-security-policy"]
    _, headers, text = ask(f"{served}/raw?run=first&key=0")
    assert headers["content-type"] == "application/json"
    assert json.loads(text)["task_id"] == "T/1"
    assert ask(f"{served}/raw?run=first&key=7")[0] == 404


def test_the_reader_lists_the_episodes_about_it_with_their_beginnings(served, ask, two, rows):
    two.play(2, *(rows.rollout(text=f"word {n}\nmore", task=f"T/{n}") for n in range(30)))
    _, _, text = ask(f"{served}/episode?run=first&key=15&order=oldest")
    assert text.count('<span class="words">') == 13
    assert '<span class="words">word 14</span>' in text
    two.play(3, rows.rollout(text="```python\n\nx = 1\n```"))
    assert '<span class="words">x = 1</span>' in ask(f"{served}/episode?run=first&key=31")[2]


def test_a_second_turn_shows_what_changed_since_the_first(served, ask, run, rows):
    run.train(1)
    run.play(1, rows.tree())
    _, _, text = ask(f"{served}/episode?run=first&key=0&path=0.1")
    assert "what changed since turn 1" in text
    assert "<ins>better</ins>" in text


def test_a_folder_of_a_suite_is_opened(run):
    turn = {"actions": {"a": "words"}, "rewards": {"a": 1.0}}
    run.append("episodes.jsonl", {"key": "x", "entry": "e", "task_id": "T/1", "seed": 1,
                                  "return": 1.0, "solved": True, "turns": [turn]})  # fmt: skip
    (found,) = Library(run.path.parent).runs()
    index = found.episodes["training"]
    index.read_all()
    assert (len(index), index.unreadable) == (1, 0)
    entry = index.entry(int(index.select(Query())[0]))
    assert (entry.iteration, entry.summary.mean, entry.summary.solved) == (0, 1.0, 1.0)


def test_a_folder_with_evaluations_alone_is_opened(run):
    episode = {"task_id": "T/1", "return": 0.5, "solved": False, "turns": []}
    run.append("evaluations.jsonl", {"iteration": 0, "episodes": [episode]})
    (found,) = Library(run.path.parent).runs()
    assert found.main_source == "evaluation"
    index = EpisodeIndex(run.path / "evaluations.jsonl")
    index.read_all()
    assert index.beginnings([0]) == [""]


@pytest.mark.parametrize("path", ["/episode", "/compare", "/markdown"])
def test_an_episode_of_a_file_that_is_still_read_opens_by_itself(
    served, ask, run, rows, monkeypatch, path
):
    run.play(1, rows.rollout())
    monkeypatch.setattr(EpisodeIndex, "is_reading", True)
    status, headers, text = ask(f"{served}{path}?run=first&key=7&other=first")
    assert (status, headers["refresh"]) == (202, "2")
    assert "still being read" in text


def test_runs_of_the_same_environment_are_offered_first(served, ask, two, other_run):
    for name, env_id in (("first", "b"), ("second", "a"), ("third", "b")):
        folder = two.path.parent / name
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(f"env: {{id: {env_id}}}\n")
        (folder / "metrics.jsonl").touch()
    _, _, text = ask(f"{served}/episode?run=first&key=0")
    assert text.index('<option value="third"') < text.index('<option value="second"')
