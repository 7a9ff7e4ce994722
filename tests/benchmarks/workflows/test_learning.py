import json
import random
import re
from dataclasses import replace

import pytest

import mlrl_envs
from benchmarks.workflows import learning
from benchmarks.workflows.games import GAMES
from mlrl_learners.config.run import to_mapping
from mlrl_learners.config.yaml import dump_yaml
from mlrl_learners.errors import RunDirError

STORED = json.loads(learning.RESULTS.read_text("utf-8"))
HUNT = GAMES["stag-hunt"]
SHORT = replace(HUNT, imitation=1, updates=2, episodes=2, answers=12)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("shape", learning.NAMES)
def test_updates_of_all_graphs_have_nearly_the_same_number_of_answers(game, shape, tmp_path):
    game = GAMES[game]
    config = learning.run_config(game, shape, 0, tmp_path)
    rollouts = config.learner.options["group"]["rollouts"]
    answers = config.train.tasks_per_iteration * rollouts * game.most_answers(shape)
    least = game.answers - (game.rollouts or 1) * game.most_answers(shape)
    assert max(0, least) < answers <= game.answers


def test_critics_imitate_right_verdicts_and_other_nodes_right_answers():
    game, draw = GAMES["math"], random.Random(0)
    env = mlrl_envs.make(game.env_id, split="train", **game.options("critic"))
    seen = set()
    for seed in range(20):
        observations, _ = env.reset(seed=seed)
        played = {}
        while env.agents:
            right, answers = env.reference_actions(), game.answers_of(env, played, draw)
            for node, answer in answers.items():
                if node.endswith("critic"):
                    draft = played[node.replace("critic", "writer")]
                    assert (answer.imitated == "APPROVED") == (draft == right[node])
                    assert draft in observations[node]
                else:
                    assert answer.imitated == right[node]
                seen.add((node, answer.imitated == answer.played))
            played |= {node: answer.played for node, answer in answers.items()}
            observations, *_ = env.step({node: played[node] for node in answers})
    assert {("solver_writer", True), ("solver_writer", False), ("solver_critic", True)} <= seen


def test_a_slip_changes_the_result_wherever_it_stands():
    game, draw = GAMES["math"], random.Random(1)
    env = mlrl_envs.make(game.env_id, split="train", **game.options("plain"))
    env.reset(seed=0)
    answers = [game.answers_of(env, {}, draw)["solver"] for _ in range(20)]
    wrong = [each.played for each in answers if each.played != each.imitated]
    for text in wrong:
        equation, result = re.fullmatch(r".* = (-?\d+)\nAnswer: (-?\d+)", text).groups()
        assert equation == result
    assert 5 < len(wrong) < 15


def test_gains_are_paired_by_seed():
    records = [
        {"shape": shape, "seed": seed, "answers": 2, "tokens": 5, "before": 1.0, "after": after}
        for shape, afters in {"plain": [2.0, 3.0], "vote": [2.5, 3.5]}.items()
        for seed, after in enumerate(afters)
    ]
    plain, vote = learning.rows(records)
    assert (plain["learnt"], plain["gain"]) == (1.5, 0.0)
    assert (vote["gain"], vote["gain_half_width"]) == (0.5, 0.0)


@pytest.mark.parametrize("game", STORED)
def test_the_page_has_the_rows_of_the_stored_runs(game):
    stored = STORED[game]
    assert learning.rows(stored["runs"]) == stored["rows"]
    assert learning.table(stored["rows"]) in learning.PAGE.read_text("utf-8")


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Copies of the stored results and of the page."""
    for name in ("RESULTS", "PAGE"):
        copy = tmp_path / name
        copy.write_bytes(getattr(learning, name).read_bytes())
        monkeypatch.setattr(learning, name, copy)
    return learning.RESULTS, learning.PAGE


def test_a_part_of_the_runs_is_added_to_those_that_are_stored(published):
    before = [path.read_bytes() for path in published]
    runs = STORED["stag-hunt"]["runs"]
    assert learning._publish("stag-hunt", [run for run in runs if run["shape"] == "vote"])
    assert [path.read_bytes() for path in published] == before


def test_a_part_of_the_runs_does_not_replace_those_of_another_plan(published, monkeypatch, capsys):
    before = [path.read_bytes() for path in published]
    monkeypatch.setitem(GAMES, "stag-hunt", replace(HUNT, updates=24))
    assert not learning._publish("stag-hunt", STORED["stag-hunt"]["runs"][:3])
    assert "another plan" in capsys.readouterr().err
    assert [path.read_bytes() for path in published] == before


def test_runs_that_are_missing_or_of_another_shape_are_left_out(published, tmp_path, capsys):
    before = [path.read_bytes() for path in published]
    run_dir = tmp_path / "stag-hunt" / "vote-0"
    run_dir.mkdir(parents=True)
    config = learning.run_config(HUNT, "chain", 0, tmp_path)
    (run_dir / "config.yaml").write_text(dump_yaml(to_mapping(config)))
    words = ["--games", "stag-hunt", "--runs", str(tmp_path), "--seeds", "0"]
    words += ["--shapes", "vote", "chain", "--gather-only"]
    assert learning.main([*words, "--publish"]) == 1
    message = capsys.readouterr().err
    assert "left out: stag-hunt, chain, seed 0: not trained" in message
    assert "env.options.workflow was 'chain', now 'vote'" in message
    assert [path.read_bytes() for path in published] == before


def test_a_model_of_another_size_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(learning, "finish", lambda config, run_dir: False)
    assert learning._model(HUNT, 0, tmp_path) is None
    other = replace(HUNT, size=replace(HUNT.size, hidden_size=16))
    with pytest.raises(RunDirError, match="made in another way"):
        learning._model(other, 0, tmp_path)


@pytest.mark.slow
def test_a_run_is_trained_once_and_published(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(GAMES, "stag-hunt", SHORT)
    words = ["--games", "stag-hunt", "--runs", str(tmp_path), "--seeds", "0"]
    words += ["--shapes", "plain", "critic"]
    assert learning.main(words) == 0
    first = capsys.readouterr().out
    assert "| `critic` | 6 |" in first
    monkeypatch.setattr("mlrl_learners.cli.train.train_config", None)  # nothing is trained again
    assert learning.main(words) == 0
    assert capsys.readouterr().out == first
