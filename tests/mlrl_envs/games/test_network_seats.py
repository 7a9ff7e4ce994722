"""Seats of agents in a network: fixed ones tell a place, random ones do not."""

import dataclasses
import itertools
import re

import pytest

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.graphs import TOPOLOGIES
from mlrl_envs.games.network import Network
from mlrl_envs.games.network_state import fraction_valid, node_of
from tests.mlrl_envs.games.test_network import networkx, to_networkx


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_random_seats_give_the_same_graph_with_other_numbers(topology):
    for seed in range(5):
        fixed, drawn = (
            Network(num_agents=8, topology=topology, seats=seats).start(seed)
            for seats in ("fixed", "random")
        )
        assert networkx.is_isomorphic(to_networkx(fixed.graph), to_networkx(drawn.graph))
        assert (fixed.labels, fixed.values) == (drawn.labels, drawn.values)


def best_constant(seats):
    """Return the largest share of valid nodes of answers that read nothing, over 200 graphs."""
    starts = [Network(seats=seats).start(seed) for seed in range(200)]
    colours = itertools.product("123", repeat=4)

    def mean_share(answers):
        ends = [dataclasses.replace(start, answers=answers) for start in starts]
        return sum(map(fraction_valid, ends)) / len(ends)

    return max(map(mean_share, colours))


def test_answers_that_read_nothing_earn_less_if_seats_are_random():
    assert best_constant("fixed") > 0.8
    assert best_constant("random") < 0.7


def test_unknown_seats_are_refused():
    with pytest.raises(InvalidArgumentError, match="seats"):
        Network(seats="swapped")


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_neighbours_are_listed_by_number_if_seats_are_random(topology):
    game = Network(num_agents=8, topology=topology, seats="random", problem="consensus", rounds=1)
    state = game.play(game.start(1), dict.fromkeys(game.agents, "hello"))
    for agent in game.agents:
        numbers = re.findall(r"\d{3}", game.view(state, agent).partition("neighbours: ")[2])
        near = numbers[: len(state.graph[node_of(agent)])]
        assert near == sorted(near)
        assert [number for number in numbers if number in near] == near * 2
