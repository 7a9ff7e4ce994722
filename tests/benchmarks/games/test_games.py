"""The proof on games: plans are trained by ordinary runs, resumed, measured and written down."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import mlrl_envs
import mlrl_learners
from benchmarks.games import results
from benchmarks.games.__main__ import main
from benchmarks.games.measures import measure
from benchmarks.games.model import ModelSize, save_model, word_tokenizer
from benchmarks.games.plans import Method, Stage
from benchmarks.games.play import ScriptPlayer, collect_play, texts_of
from benchmarks.games.table import PLANS
from benchmarks.games.training import snapshots, train_method
from benchmarks.shared.kept_runs import shared_weights
from mlrl_envs.games import questions
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import RunDirError
from mlrl_learners.types import RolloutConfig

METHODS = [(game, name) for game, plan in PLANS.items() for name in plan.methods]
TINY = {"group": {"size": 2}, "penalty": {"kl_coef": 0.1}}


def tiny(plan, **changes):
    """A plan with two stages of two updates."""
    stage = Stage(2, 2, "magrpo", TINY, rounds=2)
    changes = {"methods": {"quick": Method((stage,), "quick")}, **changes}
    size = ModelSize(hidden_size=16, num_layers=1)
    return replace(plan, games=24, sft=2, points=2, size=size, **changes)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    plan = tiny(PLANS["kuhn"])
    train_method(plan, "quick", 0, runs)
    return plan, runs


def test_words_of_moves_are_read_as_the_same_moves():
    env = mlrl_envs.make("mlrl/nim-v0", num_tasks=1)
    asked = questions(env.family)
    tokenizer = word_tokenizer(text for each in asked for text in (each.prompt, *each.answers))
    states = {each.key: each for each in asked}
    for each in list(states.values())[:20]:
        assert tokenizer.unk_token_id not in tokenizer(each.prompt)["input_ids"]
        for move, answer in zip(each.moves, each.answers, strict=True):
            text = tokenizer.decode(tokenizer(answer)["input_ids"])
            assert re.sub(r"\s*</?move>\s*", "", text) == move


def test_the_board_of_tictactoe_is_all_that_is_left_of_a_prompt():
    plan = PLANS["tictactoe"]
    env = mlrl_envs.make(plan.env_id, random_start=True)
    asked = questions(env.family)[:200]
    texts = [text for each in asked for text in (each.prompt, *each.answers)]
    tokenizer = word_tokenizer(texts, plan.unread)
    read = {tuple(tokenizer(each.prompt)["input_ids"]) for each in asked}
    assert len(read) == len(asked)
    assert all(len(words) == 11 for words in read)  # the own mark, a full stop and nine cells
    assert tokenizer.tokenize("<move>5</move>") == ["<move>", "5", "</move>"]


def test_scripts_take_part_in_the_games_that_are_imitated(tmp_path):
    file = tmp_path / "play.jsonl"
    collect_play(file, env_id="mlrl/kuhn-v0", options={}, scripts=("cautious",), games=12)
    answers = {
        action
        for line in file.read_text().splitlines()
        for turn in json.loads(line).get("turns", [])
        for action in turn["actions"].values()
    }
    assert answers <= {f"<move>{move}</move>" for move in ("check", "bet", "call", "fold")}
    assert any("Kuhn poker" in text for text in texts_of(file))


def test_moves_of_scripts_depend_on_the_seed_alone():
    def played(seed):
        env = mlrl_envs.make("mlrl/nim-v0", split="sample")
        observations, _ = env.reset(seed=0)
        player, moves = ScriptPlayer(("random", "greedy"), seed), []
        while env.agents:
            player.watch([env])
            (answers,) = player.act([{agent: observations[agent] for agent in env.acting}])
            moves.append({agent: given[0].text for agent, given in answers.items()})
            observations, *_ = env.step(moves[-1])
        return moves

    assert played(3) == played(3)


@pytest.mark.parametrize(("game", "name"), METHODS)
def test_every_stage_is_accepted_by_its_learner(game, name):
    plan = PLANS[game]
    method = plan.methods[name]
    for stage in method.stages[:1]:
        env = mlrl_envs.make(plan.env_id, **{**plan.env, **method.env, **stage.env})
        shared = {"team": {"share_weights": True}, "sampling": {"max_new_tokens": 8}}
        options = merge_options(shared, stage.options)
        learner = mlrl_learners.make(
            stage.learner, agents=list(env.possible_agents), model="tiny-random", **options
        )
        assert isinstance(learner.rollout, RolloutConfig)
        learner.check_rollout(learner.rollout)
        learner.plan_updates(stage.iterations)


def test_a_stage_starts_from_the_last_weights_of_the_stage_before(trained):
    _, runs = trained
    for number, before in ((1, "sft-0"), (2, "quick-0/stage-1")):
        text = (runs / "quick-0" / f"stage-{number}" / "config.yaml").read_text()
        assert str(runs / before / "checkpoints" / "step_2" / "learner" / "shared") in text


def test_weights_are_measured_once_after_imitation_and_after_every_checkpoint(trained):
    plan, runs = trained
    assert [each.update for each in snapshots(plan, "quick", 0, runs)] == [0, 1, 2, 3, 4]
    curve = results.measure_method(plan, "quick", 0, runs)
    assert [record["update"] for record in curve["measures"]] == [0, 1, 2, 3, 4]
    assert all(0 <= record["nash_conv"] <= 4 for record in curve["measures"])
    written = (runs / "quick-0" / "measures.jsonl").read_bytes()
    assert results.measure_method(plan, "quick", 0, runs) == curve
    assert (runs / "quick-0" / "measures.jsonl").read_bytes() == written


@pytest.fixture
def copied(trained, tmp_path, monkeypatch):
    """A copy of a trained method, at the same relative path."""
    plan, runs = trained
    monkeypatch.chdir(tmp_path)
    shutil.copytree(runs, tmp_path / "runs")
    for config in (tmp_path / "runs").rglob("config.yaml"):
        config.write_text(config.read_text().replace(str(runs), "runs"))
    return plan, Path("runs")


def test_weights_that_were_trained_again_are_measured_again(copied, monkeypatch):
    plan, runs = copied
    results.measure_method(plan, "quick", 0, runs)
    measured = []

    def fake(kind, folder, env_id, options):
        measured.append(folder)
        return {"nash_conv": 9.0}

    monkeypatch.setattr(results, "measure", fake)
    last = shared_weights(runs / "quick-0" / "stage-2", 2)
    shutil.copy(shared_weights(runs / "sft-0", 2) / "model.safetensors", last)
    curve = results.measure_method(plan, "quick", 0, runs)
    assert measured == [last]
    assert [record["nash_conv"] == 9.0 for record in curve["measures"]] == [False] * 4 + [True]
    method = replace(plan.methods["quick"], env={"num_tasks": 12})
    for config in (runs / "quick-0").rglob("config.yaml"):
        config.write_text(config.read_text().replace("num_tasks: 6", "num_tasks: 12"))
    results.measure_method(replace(plan, methods={"quick": method}), "quick", 0, runs)
    assert len(measured) == 1 + 5


def test_a_method_of_another_configuration_or_without_its_last_weights_is_not_measured(copied):
    plan, runs = copied
    other = tiny(PLANS["kuhn"], methods={"quick": Method((Stage(2, 3, "magrpo", TINY),), "")})
    with pytest.raises(RunDirError, match=r"tasks_per_iteration was 2, now 3"):
        results.measure_method(other, "quick", 0, runs)
    shutil.rmtree(shared_weights(runs / "quick-0" / "stage-2", 2))
    with pytest.raises(RunDirError, match="not finished: no weights after 4 updates"):
        results.measure_method(plan, "quick", 0, runs)


def test_play_and_model_that_were_made_in_another_way_are_not_kept(copied):
    plan, runs = copied
    train_method(plan, "quick", 0, runs)
    with pytest.raises(RunDirError, match="made in another way"):
        train_method(replace(plan, games=25), "quick", 0, runs)


def test_training_that_is_complete_is_not_repeated(trained):
    plan, runs = trained
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*") if path.is_file()}
    train_method(plan, "quick", 0, runs)
    after = {path: path.stat().st_mtime_ns for path in runs.rglob("*") if path.is_file()}
    assert after == before


def test_training_that_was_cut_off_ends_with_the_same_weights(trained, tmp_path, monkeypatch):
    plan, runs = trained
    from mlrl_learners.cli.train import train_config

    calls = []

    def dies_in_the_last_stage(config, run_dir, **options):
        calls.append(run_dir.name)
        if calls == ["sft-0", "stage-1", "stage-2"]:
            cut = replace(config, train=replace(config.train, iterations=1))
            train_config(cut, run_dir, **options)
            stored = run_dir / "config.yaml"
            stored.write_text(stored.read_text().replace("iterations: 1\n", "iterations: 2\n"))
            raise KeyboardInterrupt
        return train_config(config, run_dir, **options)

    monkeypatch.setattr("mlrl_learners.cli.train.train_config", dies_in_the_last_stage)
    with pytest.raises(KeyboardInterrupt):
        train_method(plan, "quick", 0, tmp_path)
    train_method(plan, "quick", 0, tmp_path)
    assert calls == ["sft-0", "stage-1", "stage-2", "stage-2"]
    last = "quick-0/stage-2/checkpoints/step_2/learner/shared/model.safetensors"
    assert (tmp_path / last).read_bytes() == (runs / last).read_bytes()


def test_the_command_writes_results_a_picture_and_a_table(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(PLANS, "kuhn", tiny(PLANS["kuhn"]))
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr("benchmarks.games.__main__.ROOT", tmp_path)
    words = ["kuhn", "--seeds", "0", "--runs", str(tmp_path / "runs")]
    assert main(words) == 0
    assert "| quick | 1 |" in capsys.readouterr().out
    stored = json.loads((tmp_path / "benchmarks/games/results/kuhn.json").read_text())
    assert [run["seed"] for run in stored["runs"]] == [0]
    assert (tmp_path / "docs/images/games_kuhn.svg").stat().st_size > 0
    assert main(words) == 2
    assert "--resume" in capsys.readouterr().err
    assert main([*words, "--resume"]) == 0


def test_an_unknown_method_is_one_line(tmp_path, capsys):
    assert main(["nim", "--methods", "nothing", "--runs", str(tmp_path / "runs")]) == 2
    assert "got 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("game", "options", "keys"),
    [
        ("nim", {"num_piles": 2, "max_pile": 2}, {"perfect", "value_against_perfect"}),
        ("matrix", {"rounds": 1}, {"welfare", "nash_conv", "cooperation"}),
        ("public-goods", {"rounds": 1, "num_agents": 2, "endowment": 2}, {"welfare", "given"}),
        ("hanabi", {"variant": "small"}, {"score", "greedy score"}),
    ],
)
def test_every_kind_of_measure_reads_a_model_in_a_folder(
    game, options, keys, tmp_path, monkeypatch
):
    monkeypatch.setattr("benchmarks.games.measures.GAMES", 2)
    plan = PLANS[game]
    file = tmp_path / "play.jsonl"
    collect_play(file, env_id=plan.env_id, options=options, scripts=("random",), games=4)
    save_model(tmp_path / "model", texts_of(file), ModelSize(hidden_size=16, num_layers=1), seed=0)
    found = measure(plan.measure, tmp_path / "model", plan.env_id, options)
    assert keys <= set(found)
