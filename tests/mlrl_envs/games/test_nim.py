import functools
import itertools
from collections import Counter

import pytest

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.measures import uniform_policy, value_against
from mlrl_envs.games.nim import Nim, NimFamily, NimState, winning_moves
from mlrl_envs.games.outcomes import mean_returns
from mlrl_envs.games.perfect import optimal_moves, optimal_play, perfect_policy


@functools.cache
def _wins(piles, misere):
    """Return whether the player to move wins, by trying all moves."""
    if not any(piles):
        return misere
    return any(not _wins(rest, misere) for rest, _ in _after(piles))


def _after(piles):
    """Return the sorted piles after every move, and the move."""
    return [
        (tuple(sorted((*piles[:i], left, *piles[i + 1 :]))), f"take {size - left} from {'ABC'[i]}")
        for i, size in enumerate(piles)
        for left in range(size)
    ]


ALL = [(a, b, c) for a in range(6) for b in range(6) for c in range(6) if a or b or c]


@pytest.mark.parametrize("misere", [False, True])
def test_winning_moves_are_those_of_the_full_search(misere):
    game = Nim(max_pile=5, misere=misere)
    for piles in ALL:
        expected = {move for rest, move in _after(piles) if not _wins(rest, misere)}
        assert set(winning_moves(piles, misere=misere)) == expected
        assert set(game.legal(NimState(piles), "player_0")) == {move for _, move in _after(piles)}


@pytest.mark.parametrize("misere", [False, True])
def test_game_is_won_as_the_full_search_says(misere, play_states):
    game = Nim(misere=misere)
    perfect = dict.fromkeys(game.agents, game.scripts["perfect"])
    for seed in range(60):
        states, moves = play_states(game, seed, perfect)
        winner = 0 if _wins(tuple(sorted(states[0].piles)), misere) else 1
        assert game.returns(states[-1])[f"player_{winner}"] == 1.0
        taken = sum(int(move.split()[1]) for each in moves for move in each.values())
        assert taken == sum(states[0].piles)


@pytest.mark.parametrize("misere", [False, True])
def test_backward_induction_agrees(misere):
    game = Nim(max_pile=3, misere=misere)
    for (agent, view), moves in optimal_moves(game).items():
        piles = tuple(int(part) for part in view.strip("Piles: .").replace(",", "").split()[1::2])
        legal = game.legal(NimState(piles), agent)
        assert set(moves) == set(winning_moves(piles, misere=misere) or legal)


def test_perfect_policy_plays_all_positions_perfectly():
    game = Nim()
    shares = optimal_play(game, perfect_policy(game))
    assert shares["probability"] == pytest.approx(1, abs=1e-9)
    assert shares["perfect"] == 1.0
    uniform = optimal_play(game, uniform_policy(game))
    assert uniform["perfect"] == 0.0
    assert 0 < uniform["probability"] < 0.5
    positions = {NimState(piles, s) for piles in ALL for s in (0, 1) if max(piles) <= 4}
    with_choice = [s for s in positions if 0 < len(winning_moves(s.piles)) < sum(s.piles)]
    reachable = [s for s in with_choice if s.seat == 1 or all(s.piles)]
    assert len(reachable) <= uniform["positions"] <= len(with_choice)


def test_value_against_a_perfect_player():
    game = Nim(max_pile=3)
    perfect = perfect_policy(game)
    won = sum(_wins(tuple(sorted(state.piles)), False) for _, state in game.roots())
    value = value_against(game, perfect, "player_0", perfect)
    assert value == pytest.approx(2 * won / 27 - 1, abs=1e-9)
    assert value_against(game, uniform_policy(game), "player_0", perfect) < value


def test_perfect_script_beats_the_others():
    game = Nim()
    for weaker, stronger in (("greedy", "perfect"), ("random", "perfect")):
        players = {"player_0": game.scripts[weaker], "player_1": game.scripts[stronger]}
        swapped = {"player_0": game.scripts[stronger], "player_1": game.scripts[weaker]}
        gain = mean_returns(game, swapped, range(200))["player_0"]
        assert gain + mean_returns(game, players, range(200))["player_1"] > 0


def test_roots_are_the_draws():
    game = Nim(num_piles=2, max_pile=2)
    roots = {state.piles for _, state in game.roots()}
    assert (
        roots == {game.start(seed).piles for seed in range(100)} == {(1, 1), (1, 2), (2, 1), (2, 2)}
    )
    assert Nim(num_piles=8, max_pile=20).roots() is None
    with pytest.raises(InvalidArgumentError, match="too many states"):
        uniform_policy(Nim(num_piles=8, max_pile=20))


def test_random_starts_are_all_positions_equally_probable():
    game = Nim(num_piles=2, max_pile=2, random_start=True)
    roots = {state.piles: p for p, state in game.roots()}
    starts = Counter(game.start(seed).piles for seed in range(4000))
    assert set(roots) == set(starts) == set(itertools.product(range(3), repeat=2)) - {(0, 0)}
    assert roots == pytest.approx(dict.fromkeys(roots, 1 / 8))
    assert {piles: n / 4000 for piles, n in starts.items()} == pytest.approx(roots, abs=0.02)


@pytest.mark.parametrize(
    "options", [{"num_piles": 9}, {"max_pile": 0}, {"misere": 1}, {"random_start": 1}], ids=str
)
def test_wrong_options(options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        NimFamily.make_env(**options)


def test_other_players_piles_and_sizes_are_illegal():
    game = Nim()
    state = NimState((1, 0, 3))
    for text in ("take 2 from A", "take 1 from B", "take 1 from D", "take 0 from C", "take from C"):
        assert game.read(state, "player_0", text) is None
