import json

import pytest

import mlrl_envs
import mlrl_learners
from mlrl_learners.actors import RandomActor, ScriptActor
from mlrl_learners.bench.crossplay import crossplay, crossplay_suite, matches_of
from mlrl_learners.bench.exact_policies import nash_conv_of
from mlrl_learners.bench.suite import Budget, Entry
from mlrl_learners.bench.suite_run import RunSettings
from mlrl_learners.errors import ConfigError


class Script:
    """Source of a scripted player that counts how often it was made."""

    def __init__(self, name):
        self.name, self.made = name, 0

    def identity(self, seed, env_id):
        return {"name": self.name}

    def describe(self, seeds, env_ids):
        return {"name": self.name, "base": f"script:{self.name}", "envs": env_ids}

    def make(self, agents, *, env_id, tokens, seed):
        self.made += 1
        return ScriptActor(self.name, seed)


def suite_of(env="mlrl/nim-v0", tasks=6, seeds=(0,), **options):
    entry = Entry(env, "eval", tasks, options, Budget(None, 8))
    return crossplay_suite(entry, seeds)


def play(folder, names, suite=None):
    sources = [Script(name) for name in names]
    return crossplay(suite or suite_of(), sources, folder, RunSettings()), sources


def test_all_seat_permutations_of_two_agents_are_played_once():
    assert sorted(matches_of(3, 2)) == [(a, b) for a in range(3) for b in range(3)]


def test_with_more_agents_one_plays_against_the_rest_in_every_seat():
    assert len(matches_of(2, 3)) == 2 + 2 * 3
    assert (1, 0, 0) in matches_of(2, 3)


def test_a_perfect_player_is_above_a_random_one_in_matrix_and_elo(tmp_path):
    result, _ = play(tmp_path, ["random", "perfect"])
    mean = result["matrix"]["mean"]
    assert mean[1][0] > 0.5
    assert mean[0][1] == pytest.approx(-mean[1][0])
    low, high = result["matrix"]["low"][1][0], result["matrix"]["high"][1][0]
    assert low <= mean[1][0] <= high
    assert result["elo"]["mean"][1] > result["elo"]["mean"][0] + 100
    assert result["elo"]["low"][1] <= result["elo"]["mean"][1] <= result["elo"]["high"][1]
    assert result["nash_conv"]["perfect"] == pytest.approx(0.0, abs=1e-9)
    assert result["nash_conv"]["random"] > 0.1
    assert result["complete"]


def test_an_actor_meets_itself_on_the_diagonal(tmp_path):
    result, _ = play(tmp_path, ["random", "perfect"])
    assert [result["matrix"]["mean"][i][i] for i in (0, 1)] == [0.0, 0.0]
    assert sum(match["episodes"] for match in result["matches"]) == 4 * 6


def test_finished_episodes_are_not_played_again(tmp_path):
    first, _ = play(tmp_path, ["random", "perfect"])
    lines = (tmp_path / "episodes.jsonl").read_text().splitlines()
    (tmp_path / "episodes.jsonl").write_text("\n".join(lines[:9]) + "\n")
    again, _ = play(tmp_path, ["random", "perfect"])
    assert {**again, "provenance": {}} == {**first, "provenance": {}}
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == len(lines)


def test_another_actor_adds_its_matches_to_the_folder(tmp_path):
    play(tmp_path, ["random", "perfect"])
    before = (tmp_path / "episodes.jsonl").read_text()
    result, _ = play(tmp_path, ["random", "perfect", "greedy"])
    assert (tmp_path / "episodes.jsonl").read_text().startswith(before)
    assert len(result["matches"]) == 9


def test_the_result_is_json(tmp_path):
    result, _ = play(tmp_path, ["random", "perfect"], suite_of(seeds=(0, 1)))
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_the_result_says_what_was_played_and_scored_with(tmp_path):
    suite = suite_of(tasks=1)
    result, _ = play(tmp_path, ["random", "perfect"], suite)
    assert [each["base"] for each in result["descriptions"]] == ["script:random", "script:perfect"]
    hashes = mlrl_envs.fingerprint(suite.entries[0].make_env())
    assert (result["data"], result["scorers"]) == (hashes["data"], [hashes["scorer"]])
    assert "mlrl" in result["provenance"]["packages"]
    assert "command" not in result["provenance"]


def test_a_single_task_has_no_interval(tmp_path):
    result, _ = play(tmp_path, ["random", "perfect"], suite_of(tasks=1))
    assert (result["matrix"]["low"], result["elo"]["high"]) == (None, None)


def test_games_with_more_agents_are_rated_too(tmp_path):
    suite = suite_of("mlrl/public-goods-v0", 2, num_agents=3, rounds=1)
    env = suite.entries[0].make_env()
    names = list(env.scripts)[:2]
    result, _ = play(tmp_path, names, suite)
    assert len(result["matches"]) == 8
    assert len(result["elo"]["mean"]) == 2


@pytest.mark.parametrize(
    ("names", "message"),
    [(["random"], "at least 2 actors, got 1"), (["random", "random"], "'random' appears twice")],
)
def test_too_few_or_equal_actors_are_one_line(tmp_path, names, message):
    with pytest.raises(ConfigError, match=message):
        play(tmp_path / "run", names)
    assert not (tmp_path / "run").exists()


def test_the_nash_conv_of_the_equilibrium_script_is_zero():
    env = mlrl_envs.make("mlrl/kuhn-v0")
    assert nash_conv_of(ScriptActor("nash"), env) == pytest.approx(0.0, abs=1e-9)
    assert nash_conv_of(ScriptActor("random"), env) == pytest.approx(11 / 12)
    assert nash_conv_of(RandomActor(), env) is None


def test_a_model_that_names_no_move_plays_uniformly():
    env = mlrl_envs.make("mlrl/kuhn-v0")
    model = mlrl_learners.make(
        "magrpo",
        agents=env.possible_agents,
        model="tiny-random",
        compute={"device": "cpu"},
        sampling={"max_new_tokens": 4},
    )
    # A random model writes "<move>bet</move>" with probability 0, and illegal answers are replaced.
    assert nash_conv_of(model, env) == pytest.approx(11 / 12, abs=1e-3)
