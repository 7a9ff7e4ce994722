"""Negotiations against enumerations of who gets each single item."""

import itertools
import random

import pytest

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.negotiation import Negotiation
from mlrl_envs.games.negotiation_state import (
    NegotiationState,
    bundle_text,
    claim_of,
    truthful_share,
)
from mlrl_envs.games.negotiation_values import (
    best_division,
    divisions,
    efficiency,
    envy,
    fits,
    is_pareto,
)

GAMES = [Negotiation(players, talk=talk) for players in (2, 3, 4) for talk in (False, True)]


def run(game, seed, script):
    state, rng = game.start(seed), random.Random(seed)
    while acting := game.acting(state):
        moves = {agent: game.scripts[script](state, agent, rng) for agent in acting}
        state = game.play(state, moves)
    return state


def owners(counts, players):
    """Yield the worths of each way to give every single item to somebody."""
    kinds = [kind for kind, count in enumerate(counts) for _ in range(count)]
    for chosen in itertools.product(range(players), repeat=len(kinds)):
        yield tuple(
            tuple(sum(o == agent and k == kind for o, k in zip(chosen, kinds, strict=True))
                  for kind in range(len(counts)))
            for agent in range(players)
        )  # fmt: skip


def worths(division, values):
    return tuple(
        sum(n * v for n, v in zip(bundle, row, strict=True))
        for bundle, row in zip(division, values, strict=True)
    )


@pytest.mark.parametrize("players", [2, 3])
def test_measures_agree_with_the_enumeration_of_owners(players):
    for seed in range(8 if players == 2 else 2):
        start = Negotiation(players).start(seed)
        counts, values = start.counts, start.values
        everything = set(owners(counts, players))
        assert set(divisions(counts, players)) == everything
        assert len(divisions(counts, players)) == len(everything)
        table = {division: worths(division, values) for division in everything}
        best = max(sum(row) for row in table.values())
        top = max((a * b if players == 2 else a * b * c) for a, b, *c_ in table.values()
                  for c in (c_ or [1]))  # fmt: skip
        chosen = table[best_division(counts, values)]
        product = 1
        for each in chosen:
            product *= each
        assert product == top
        rows = set(table.values())
        for division in sorted(everything)[:: 1 if players == 2 else 23]:
            row = table[division]
            dominated = any(
                other != row and all(a >= b for a, b in zip(other, row, strict=True))
                for other in rows
            )
            assert is_pareto(division, counts, values) == (not dominated)
            assert abs(efficiency(division, counts, values) - sum(row) / best) < 1e-9
            missing = [
                max(worths([bundle], [values[agent]])[0] for bundle in division) - row[agent]
                for agent in range(players)
            ]
            assert abs(envy(division, values) - sum(missing) / players / 10) < 1e-9


@pytest.mark.parametrize("players", [2, 3, 4])
def test_values_follow_their_rules(players):
    for seed in range(200):
        state = Negotiation(players).start(seed)
        assert len(state.values) == players
        assert 5 <= sum(state.counts) <= 7
        assert min(state.counts) >= 1
        assert worths([state.counts] * players, state.values) == (10,) * players
        wanted = [sum(row[kind] > 0 for row in state.values) for kind in range(3)]
        assert min(wanted) >= 1
        assert max(wanted) >= 2


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_games_agree_with_a_second_implementation(game):
    for seed in range(30):
        rng, state = random.Random(seed), game.start(seed)
        stock, over, paid = list(state.counts), False, [0.0] * game.num_agents
        for _ in range(game.rounds):
            if game.talk:
                state = game.play(state, dict.fromkeys(game.agents, "hello"))
            assert not over
            wanted = [[rng.randint(0, n) // rng.randint(1, 2) for n in stock] for _ in paid]
            texts = (f"{b} books, {h} hats, {c} balls" for b, h, c in wanted)
            state = game.play(state, dict(zip(game.agents, texts, strict=True)))
            if all(sum(row[kind] for row in wanted) <= stock[kind] for kind in range(3)):
                over, paid = True, [total / 10 for total in worths(wanted, state.values)]
                break
        assert game.acting(state) == ()
        assert game.solved(state) == over
        returns = game.returns(state)
        assert all(abs(returns[a] - p) < 1e-9 for a, p in zip(game.agents, paid, strict=True))
        assert game.figures(state)["deal"] == over


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_other_values_are_hidden(game):
    for seed in range(10):
        state, other = game.start(seed), game.start(seed + 100)
        for own, agent in enumerate(game.agents):
            values = list(other.values)
            values[own] = state.values[own]
            twin = NegotiationState(state.counts, tuple(values), state.rounds, state.talk)
            for now, then in ((state, twin), (after(game, state), after(game, twin))):
                assert game.view(now, agent) == game.view(then, agent)
                assert game.legal(now, agent) == game.legal(then, agent)
                script = game.scripts["concede"]
                assert script(now, agent, None) == script(then, agent, None)


def after(game, state):
    if game.talk:
        state = game.play(state, dict.fromkeys(game.agents, "hello"))
    state = game.play(state, dict.fromkeys(game.agents, bundle_text(state.counts)))
    return game.play(state, dict.fromkeys(game.agents, "hello")) if game.talk else state


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_honest_and_perfect_scripts_always_make_a_deal(game):
    for seed in range(40):
        for script in ("concede", "nash"):
            assert game.figures(run(game, seed, script))["deal"] == 1.0
        figures = game.figures(run(game, seed, "nash"))
        assert figures["pareto"] == 1.0
        if game.talk:
            assert figures["truthful"] == 1.0


def test_scripts_are_ordered_by_welfare():
    means = {}
    for script in Negotiation().scripts:
        states = [run(Negotiation(), seed, script) for seed in range(60)]
        means[script] = sum(Negotiation().figures(state)["welfare"] for state in states) / 60
    assert means["greedy"] < 0.1 < means["random"] < means["concede"] < means["nash"]


@pytest.mark.parametrize(
    ("text", "bundle"),
    [
        ("<move>1 book, 2 hats, 0 balls</move>", (1, 2, 0)),
        ("I take 1 book and 1 ball.", (1, 0, 1)),
        ("Hello.\n2 HATS", (0, 2, 0)),
        ("<move>0 books</move>", (0, 0, 0)),
        ("<move>books: 1, hats: 0, balls: 1</move>", (1, 0, 1)),
        ('<move>{"books": 1, "hats": 0, "balls": 1}</move>', (1, 0, 1)),
        ("<move>book=1, balls = 1</move>", (1, 0, 1)),
        ("<move>1x books, 1 x balls</move>", (1, 0, 1)),
        ("books: 1, 2 books", None),
        ("books: -1", None),
        ("books: 1.5", None),
        ("3 books, 3 books", None),
        ("1 book or 2 books", None),
        ("99 hats", None),
        ("-1 books", None),
        ("1.5 books", None),
        ("some books", None),
        ("<move>1 book</move><move>1 book, 0 hats</move>", (1, 0, 0)),
        ("<move>1 book</move> or <move>2 books</move>", None),
        ("<move>1 book</move><move></move>", None),
        ("", None),
    ],
)
def test_demands_are_read_from_text(text, bundle):
    game = Negotiation(talk=False)
    state = NegotiationState((2, 3, 1), ((1, 1, 5), (5, 0, 0)), 3, talk=False)
    expected = None if bundle is None else "{} books, {} hats, {} balls".format(*bundle)
    assert game.read(state, "player_0", text) == expected


@pytest.mark.parametrize(
    ("message", "claim"),
    [
        ("I value hats most.", "hats"),
        ("Books! Books!", "books"),
        ("a ball please", "balls"),
        ("I value hats, not books.", None),
        ("I do not want hats.", None),
        ("hello", None),
        ("that", None),
        ("", None),
    ],
)
def test_claims_are_read_from_messages(message, claim):
    assert claim_of(message) == claim


def test_truthfulness_counts_claims_about_the_favourite():
    said = (("I value hats most.", "I value hats most."), ("hello", "balls"))
    state = NegotiationState((2, 3, 1), ((1, 2, 2), (5, 0, 0)), 3, talk=True, messages=said)
    assert truthful_share(state) == 1 / 3
    assert truthful_share(NegotiationState((1,), ((1,),), 1, talk=True)) is None


def test_demands_fit_up_to_the_number_of_items():
    assert fits(((1, 0), (1, 2)), (2, 2))
    assert not fits(((1, 1), (1, 2)), (2, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_agents": 1}, "num_agents must be an int from 2 to 4, got 1"),
        ({"num_agents": 5}, "num_agents must be an int from 2 to 4, got 5"),
        ({"rounds": 0}, "rounds must be an int from 1 to 10, got 0"),
        ({"talk": "yes"}, "talk must be a bool, got 'yes'"),
    ],
)
def test_senseless_options_are_refused_in_one_line(options, message):
    with pytest.raises(InvalidArgumentError, match=message) as error:
        Negotiation(**options)
    assert "\n" not in str(error.value)
