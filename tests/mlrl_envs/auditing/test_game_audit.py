"""`audit_game` finds texts that earn more than honest play, and only those."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

import mlrl_envs
from mlrl_envs.auditing.check import check_reward
from mlrl_envs.errors import ContractError, InvalidArgumentError, UnknownNameError
from mlrl_envs.games.base import PLAYERS, Game
from mlrl_envs.games.family import GameFamily
from mlrl_envs.games.options import GameConfig


@dataclass(frozen=True)
class Sums(Game):
    """Both say the larger of two numbers; `broken` pays most for a text without a number."""

    cooperative: ClassVar[bool] = True

    broken: bool = False

    agents = PLAYERS
    reward_range = (0.0, 3.0)
    max_moves = 1

    def rules(self, agent):
        return "Say the larger number. Both earn the mean of what is right."

    def start(self, seed):
        return (seed % 7, 7 + seed % 5, None)

    def acting(self, state):
        return PLAYERS if state[2] is None else ()

    def legal(self, state, agent):
        return tuple(map(str, state[:2]))

    def play(self, state, moves):
        return (*state[:2], tuple(moves[agent] for agent in PLAYERS))

    def returns(self, state):
        said = state[2] or ()
        paid = sum(3.0 if move == "" else float(move == str(state[1])) for move in said) / 2
        return dict.fromkeys(PLAYERS, paid)

    def view(self, state, agent):
        return f"Numbers: {state[0]} and {state[1]}."

    def read(self, state, agent, text):
        return super().read(state, agent, text) or ("" if self.broken else None)

    @property
    def scripts(self):
        return {"random": self.random_move, "best": lambda state, agent, rng: str(state[1])}


@dataclass(frozen=True)
class SumsConfig(GameConfig):
    broken: bool = False


@dataclass(frozen=True)
class SumsFamily(GameFamily):
    env_id: ClassVar[str] = "test/sums-v0"
    config_type: ClassVar = SumsConfig
    game_type: ClassVar = Sums


GARBAGE = {"empty", "random_words", "injection"}


def audit(**options):
    limits = {name: options.pop(name) for name in ("budget", "tasks") if name in options}
    env = SumsFamily.make_env(**options)
    return mlrl_envs.audit_game(env, **{"budget": 40, "tasks": 24, **limits})


def test_a_game_in_which_garbage_earns_most_is_found():
    report = audit(broken=True)
    assert {each.name for each in report.exploits if not each.names_move} >= GARBAGE
    assert report.worst.seats == "all"
    assert report.worst.mean == report.ratio == 3.0
    assert "earn more than honest play: " in report.table()
    assert "empty" in report.to_json()["exploits"]


def test_honest_play_beats_every_attack_in_a_sound_game():
    report = audit()
    assert report.exploits == []
    assert report.honest_mean == 1.0
    assert all(each.gain <= 1e-9 for each in report.results)
    gains = {(each.name, each.seats): each.gain for each in report.results}
    assert gains["first_move", "all"] == -1.0
    assert gains["first_move", "one"] == -0.5
    assert gains["last_move", "all"] == 0.0
    assert gains["empty", "one"] < gains["random_move", "one"] < 0
    assert report.table().endswith("earn more than honest play: none")


def test_a_check_of_a_game_fails_only_if_garbage_pays():
    check_reward(SumsFamily.make_env())
    check_reward(mlrl_envs.make("mlrl/public-goods-v0", num_agents=2))
    with pytest.raises(ContractError, match="no text without a legal move earns more"):
        check_reward(SumsFamily.make_env(broken=True))


def test_every_seat_is_attacked_and_the_result_repeats():
    report = audit(tasks=8)
    assert report == audit(tasks=8)
    assert all(set(each.by_seat) == set(PLAYERS) for each in report.results if each.seats == "one")
    assert {each.seats for each in report.results} == {"one", "all"}


def test_a_competitive_game_has_a_gain_and_no_ratio():
    report = mlrl_envs.audit_game(mlrl_envs.make("mlrl/tictactoe-v0"), budget=14, tasks=6)
    assert report.ratio is None
    assert {each.seats for each in report.results} == {"one"}
    assert report.honest_mean == 0.0
    assert report.exploits == []


def test_defecting_against_a_script_that_gives_everything_pays():
    env = mlrl_envs.make("mlrl/public-goods-v0", num_agents=2)
    report = mlrl_envs.audit_game(env, attacks=["empty", "first_move"], budget=2, tasks=4)
    assert [each.name for each in report.exploits] == ["first_move"]


def test_the_search_finds_a_fixed_move_and_is_measured_on_other_tasks():
    env = mlrl_envs.make("mlrl/public-goods-v0", num_agents=2)
    report = mlrl_envs.audit_game(env, budget=40, tasks=8)
    search = next(each for each in report.results if each.name == "search")
    assert search.gain == report.worst.gain
    assert search.tasks == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tasks": 1}, "tasks must be at least 2"),
        ({"budget": 3}, "budget must be at least"),
    ],
)
def test_limits_that_are_too_low_are_named(options, words):
    with pytest.raises(InvalidArgumentError, match=words):
        audit(**options)


def test_unknown_attacks_and_texts_are_refused():
    with pytest.raises(UnknownNameError, match="empty"):
        mlrl_envs.audit_game(SumsFamily.make_env(), attacks=["emty"])
    env = mlrl_envs.make("mlrl/math-v2", split="sample")
    assert not mlrl_envs.is_game(env)
    with pytest.raises(InvalidArgumentError, match="use audit"):
        mlrl_envs.audit_game(env)


def test_progress_reports_the_whole_budget():
    steps = []
    env = mlrl_envs.make("mlrl/kuhn-v0")
    mlrl_envs.audit_game(env, budget=14, tasks=4, progress=steps.append)
    assert sum(steps) == 14 * 4
