"""Measures of games in results, comparisons, the leaderboard and submissions."""

import json
import random

import pytest

import mlrl_envs
from mlrl_envs.games import nash_conv, scripted_policy, uniform_policy
from mlrl_learners.bench.compare import compare
from mlrl_learners.bench.leaderboard.build import build
from mlrl_learners.bench.leaderboard.submit import check_submission
from mlrl_learners.bench.measures import (
    MEASURES_FILE,
    episode_measures,
    measure_suite,
    policy_measures,
)
from mlrl_learners.bench.results import read_result, write_result
from mlrl_learners.bench.suite import load_suite, suite_of
from mlrl_learners.bench.suite_run import RunSettings, play_suite
from mlrl_learners.cli import main
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.types import Completion
from tests.mlrl_learners.bench.games_suite import suite


def measured(source, folder, *env_ids, seeds=(0,)):
    asked, settings = suite(*env_ids, seeds=seeds), RunSettings()
    played = play_suite(asked, source, folder, settings)
    return asked, played, measure_suite(asked, source, played, folder, settings)


def figures(source, folder, env_id, **options):
    *_, found = measured(source, folder, env_id, **options)
    assert found.failures == {}
    return found.of_entry[f"{env_id}:sample"]["figures"]


def test_a_file_of_measures_is_left_alone_by_a_run_that_adds_nothing(make_source, tmp_path):
    measured(make_source(), tmp_path, "mlrl/kuhn-v0")
    with (tmp_path / MEASURES_FILE).open("a") as file:
        file.write('{"key": "torn')
    before = (tmp_path / MEASURES_FILE).read_text()
    measured(make_source(), tmp_path, "mlrl/kuhn-v0")
    assert (tmp_path / MEASURES_FILE).read_text() == before


def test_illegal_answers_have_the_nash_conv_of_uniform_play(make_source, tmp_path):
    found = figures(make_source(answer="no idea"), tmp_path, "mlrl/kuhn-v0")
    assert found["nash_conv"] == pytest.approx(11 / 12)


def test_a_deterministic_actor_has_the_nash_conv_of_its_policy(make_source, tmp_path):
    found = figures(make_source(answer="check, or else fold"), tmp_path, "mlrl/kuhn-v0")
    game = mlrl_envs.make("mlrl/kuhn-v0").family.game
    policy = {
        key: {move: float(move in ("check", "fold")) for move in row}
        for key, row in uniform_policy(game).items()
    }
    assert found["nash_conv"] == pytest.approx(nash_conv(game, policy))


def test_games_with_perfect_information_are_compared_with_a_perfect_player(make_source, tmp_path):
    found = figures(make_source(answer="?"), tmp_path, "mlrl/nim-v0")
    assert set(found) == {"nash_conv", "optimal", "vs_perfect"}


def test_welfare_and_values_against_scripts_of_a_matrix_game(make_source, tmp_path):
    found = figures(make_source(answer="cooperate"), tmp_path, "mlrl/matrix-v0")
    assert (found["welfare"], found["equality"], found["cooperation"]) == (6.0, 1.0, 1.0)
    assert (found["vs_defect"], found["vs_tit-for-tat"]) == (0.0, 6.0)


def test_a_large_zero_sum_game_is_played_against_its_best_script(make_source, tmp_path):
    found = figures(make_source(answer="1"), tmp_path, "mlrl/connect-four-v0")
    assert set(found) == {"vs_search"}
    assert -2 < found["vs_search"] < 0


def test_a_team_game_has_its_score(make_source, tmp_path):
    found = figures(make_source(answer="?"), tmp_path, "mlrl/hanabi-v0")
    assert set(found) == {"score", "share", "lives"}


def test_other_environments_have_no_measures(make_source, tmp_path, two_environments):
    source, asked = make_source(), suite_of(two_environments)
    played = play_suite(asked, source, tmp_path, RunSettings())
    assert measure_suite(asked, source, played, tmp_path, RunSettings()).of_entry == {}


def test_a_resumed_run_does_not_ask_again(make_source, tmp_path):
    first, again = make_source(), make_source()
    *_, expected = measured(first, tmp_path, "mlrl/kuhn-v0", "mlrl/connect-four-v0")
    *_, found = measured(again, tmp_path, "mlrl/kuhn-v0", "mlrl/connect-four-v0")
    assert found == expected
    assert again.made == 0
    assert len((tmp_path / MEASURES_FILE).read_text().splitlines()) == 2


def test_actors_of_several_seeds_are_measured_apart(make_source, tmp_path):
    source = make_source()
    source.identity = lambda seed, env_id: {"seed": seed}
    answers = {0: "check, or else fold", 1: "no idea"}
    source.make = lambda agents, *, env_id, tokens, seed: ScriptedActor(lambda *_: answers[seed])
    found = figures(source, tmp_path, "mlrl/kuhn-v0", seeds=(0, 1))
    alone = make_source(answer=answers[0])
    folds = figures(alone, tmp_path / "alone", "mlrl/kuhn-v0")["nash_conv"]
    assert found["nash_conv"] == pytest.approx((folds + 11 / 12) / 2)


def test_an_actor_that_sees_the_environment_is_not_asked(make_source, tmp_path):
    class Oracle:
        def watch(self, envs):
            self.envs = envs

        def act(self, observations, *, num_samples=1, explore=True):
            return [
                {agent: [Completion(text)] * num_samples for agent, text in actions.items()}
                for actions in (env.reference_actions() for env in self.envs)
            ]

    source = make_source()
    source.make = lambda agents, *, env_id, tokens, seed: Oracle()
    assert figures(source, tmp_path, "mlrl/kuhn-v0") == {}
    assert figures(source, tmp_path / "teams", "mlrl/hanabi-v0")["score"] > 0


def test_more_answers_bring_the_estimate_closer():
    env = mlrl_envs.make("mlrl/kuhn-v0")
    rng = random.Random(0)
    gaps = []
    for samples in (4, 400):
        firsts = [sum(rng.random() < 0.5 for _ in range(samples)) for _ in range(12)]
        counts = [[first, samples - first] for first in firsts]
        gaps.append(abs(policy_measures(env, [counts], samples)["nash_conv"] - 11 / 12))
    assert gaps[1] < gaps[0]


def test_counts_of_a_script_have_its_figures():
    env = mlrl_envs.make("mlrl/matrix-v0", rounds=2)
    game = env.family.game
    policy = scripted_policy(game, "defect")
    counts = [
        [int(policy[key].get(move, 0)) for move in row] for key, row in uniform_policy(game).items()
    ]
    assert policy_measures(env, [counts], 1)["nash_conv"] == pytest.approx(0)


@pytest.fixture
def add_measured(make_source, tmp_path, quick):
    """Play a suite of games, and keep its result and measures."""

    def add(name, answer, asked=None):
        source = make_source(name, answer)
        asked = asked or suite("mlrl/kuhn-v0", "mlrl/hanabi-v0")
        folder, settings = tmp_path / "runs" / name, RunSettings()
        played = play_suite(asked, source, folder, settings)
        found = measure_suite(asked, source, played, folder, settings)
        path = tmp_path / "results" / f"{name}.json"
        write_result(path, asked, source.describe(), played, settings, measures=found)
        return path

    return add


def test_a_comparison_has_the_measures_of_both(add_measured):
    first, second = (read_result(add_measured(name, name)) for name in ("check", "bet"))
    rows = {row["entry"]: row for row in compare(first, second)["entries"]}
    pair = rows["mlrl/kuhn-v0:sample"]["measures"]["nash_conv"]
    entries = [each["entries"][0] for each in (first, second)]
    assert pair == [entry["measures"]["figures"]["nash_conv"] for entry in entries]


def test_the_leaderboard_has_a_column_for_each_measure(add_measured, tmp_path):
    pytest.importorskip("jinja2")
    add_measured("check", "check")
    text = build(tmp_path / "results")["LEADERBOARD.md"]
    assert "| solved | nash_conv | vs_cautious | tokens |" in text
    assert "| solved | lives | score | share | tokens |" in text
    heads = [line.count("|") for line in text.splitlines() if line.startswith("| actor")]
    rows = [line.count("|") for line in text.splitlines() if line.startswith("| [check]")]
    assert heads == rows


def test_a_submission_with_changed_measures_is_found(add_measured):
    path = add_measured("check", "?", load_suite("games").only(["mlrl/kuhn-v0"]))
    assert check_submission(path, sample=1) == []
    result = json.loads(path.read_text())
    result["entries"][0]["measures"]["figures"] |= {"nash_conv": 0.0, "vs_nobody": 9.0}
    path.write_text(json.dumps(result))
    problems = check_submission(path, sample=1)
    assert any("measure nash_conv does not" in problem for problem in problems)
    assert any("measure vs_nobody does not" in problem for problem in problems)


def test_figures_follow_from_the_stored_actions(make_source, tmp_path):
    asked, played, found = measured(make_source(answer="?"), tmp_path, "mlrl/matrix-v0")
    env = asked.entries[0].make_env()
    again = episode_measures(env, played[0].episodes)
    assert again.items() <= found.of_entry["mlrl/matrix-v0:sample"]["figures"].items()


def test_the_command_prints_measures_unless_told_otherwise(tmp_path, capsys, quick):
    path = tmp_path / "games.yaml"
    path.write_text(
        "name: two\nversion: 0\nsummary: s\nseeds: [0]\nbudget: {turns: null, tokens: 4}\n"
        "entries:\n  - {env: mlrl/kuhn-v0, split: sample, tasks: 2}\n"
    )
    words = ["bench", "run", "--suite", str(path), "--actor", "random", "--run-dir"]
    assert main([*words, str(tmp_path / "a")]) == 0
    assert "nash_conv" in capsys.readouterr().out
    assert main([*words, str(tmp_path / "b"), "--no-measures"]) == 0
    assert "nash_conv" not in capsys.readouterr().out
