"""Network games against networkx and against brute force."""

import itertools
import random

import pytest

from mlrl_envs.errors import InvalidArgumentError, UnknownNameError
from mlrl_envs.games.graphs import TOPOLOGIES, diameter, distances
from mlrl_envs.games.network import Network
from mlrl_envs.games.network_scripts import SCRIPTS
from mlrl_envs.games.network_state import PROBLEMS, fraction_valid, node_of, valid_nodes

networkx = pytest.importorskip("networkx")
LOCAL = ("colouring", "cover", "matching")
SIZES = (4, 5, 8, 16, 33)


def to_networkx(graph):
    return networkx.Graph((node, other) for node in range(len(graph)) for other in graph[node])


def play(game, seed, script):
    state, rng = game.start(seed), random.Random(seed)
    while acting := game.acting(state):
        state = game.play(state, {agent: SCRIPTS[script](state, agent, rng) for agent in acting})
    return state


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("size", [*SIZES, 100])
def test_graphs_are_connected_simple_and_measured_as_networkx_does(topology, size):
    for seed in range(10):
        graph = Network(num_agents=size, topology=topology).start(seed).graph
        other = to_networkx(graph)
        assert len(graph) == len(other) == size
        assert networkx.is_connected(other)
        assert networkx.number_of_selfloops(other) == 0
        assert diameter(graph) == networkx.diameter(other)
        lengths = networkx.single_source_shortest_path_length(other, 0)
        assert distances(graph, 0) == [lengths[node] for node in range(size)]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_number_of_edges_grows_no_faster_than_the_number_of_nodes(topology):
    for seed in range(20):
        graph = Network(num_agents=100, topology=topology).start(seed).graph
        assert sum(map(len, graph)) / 2 <= 300


def is_solution(state):
    """Return whether the joint answer is right, by networkx."""
    graph, answers = to_networkx(state.graph), state.answers
    if state.problem == "colouring":
        return all(answers[one] != answers[other] for one, other in graph.edges)
    if state.problem == "cover":
        inside = {node for node in graph if answers[node] == "in"}
        covers = all(one in inside or other in inside for one, other in graph.edges)
        return covers and not any(
            all(one in inside - {node} or other in inside - {node} for one, other in graph.edges)
            for node in inside
        )
    if state.problem == "matching":
        place = {str(label): node for node, label in enumerate(state.labels)}
        named = {node: place.get(answers[node]) for node in graph}
        if any(other is not None and named[other] != node for node, other in named.items()):
            return False
        pairs = {
            (node, other) for node, other in named.items() if other is not None and node < other
        }
        return networkx.is_maximal_matching(graph, pairs)
    if state.problem == "leader":
        return sum(answer == "yes" for answer in answers) == 1
    return len(set(answers)) == 1 and answers[0] in map(str, state.values)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_all_nodes_are_valid_exactly_when_networkx_finds_a_solution(problem):
    for seed, topology in itertools.product(range(6), TOPOLOGIES):
        game = Network(num_agents=4, problem=problem, topology=topology, rounds=1)
        waiting = game.play(game.start(seed), dict.fromkeys(game.agents, "hello"))
        options = [game.legal(waiting, agent) for agent in game.agents]
        if problem == "consensus":
            options = [[str(waiting.values[0]), str(waiting.values[1]), "100"]] * 4
        for answers in itertools.product(*options):
            state = game.play(waiting, dict(zip(game.agents, answers, strict=True)))
            assert (fraction_valid(state) == 1.0) == is_solution(state), (state, answers)


def valid_one_by_one(state):
    """Return the valid nodes of a local problem from its definition, edge by edge."""
    valid = []
    place = {str(label): node for node, label in enumerate(state.labels)}
    partner = [place.get(answer, -1) for answer in state.answers]
    matched = [partner[node] in state.graph[node] and partner[partner[node]] == node
               for node in range(len(state.graph))]  # fmt: skip
    for node, others in enumerate(state.graph):
        answer, around = state.answers[node], [state.answers[other] for other in others]
        if state.problem == "colouring":
            valid.append(answer not in around)
        elif state.problem == "cover":
            valid.append("out" in around if answer == "in" else "out" not in around)
        else:
            single = answer == "none" and all(matched[other] for other in others)
            valid.append(matched[node] or single)
    return tuple(valid)


@pytest.mark.parametrize("problem", LOCAL)
@pytest.mark.parametrize("size", SIZES)
def test_valid_nodes_of_random_answers(problem, size):
    for seed in range(20):
        state = play(Network(num_agents=size, problem=problem, rounds=1), seed, "random")
        assert valid_nodes(state) == valid_one_by_one(state)


def test_consensus_counts_the_largest_group_that_names_a_known_number():
    game = Network(problem="consensus", rounds=1)
    state = game.play(game.start(0), dict.fromkeys(game.agents, ""))
    known, unknown = str(state.values[2]), next(
        answer for answer in game.legal(state, "node_1") if int(answer) not in state.values
    )  # fmt: skip
    for answers, expected in (
        ([known, known, known, known], 1.0),
        ([unknown, unknown, unknown, known], 0.25),
        ([unknown] * 4, 0.0),
        ([""] * 4, 0.0),
        ([known, str(state.values[0]), known, unknown], 0.5),
    ):
        end = game.play(state, dict(zip(game.agents, answers, strict=True)))
        assert fraction_valid(end) == expected


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("size", SIZES)
def test_central_knowledge_is_always_right(problem, topology, size):
    for seed in range(5):
        state = play(Network(num_agents=size, problem=problem, topology=topology), seed, "central")
        assert fraction_valid(state) == 1.0


@pytest.mark.parametrize("problem", PROBLEMS)
def test_scripts_are_ordered_from_silent_to_local(problem):
    def mean(script):
        games = [Network(num_agents=16, problem=problem)] * 10
        return sum(fraction_valid(play(g, seed, script)) for seed, g in enumerate(games)) / 10

    assert mean("local") >= 0.9
    assert mean("local") > mean("random") + 0.2
    assert mean("local") > mean("silent") + 0.2


def test_flooding_needs_as_many_rounds_as_the_diameter():
    path = tuple((node, node + 1) for node in range(7))
    for problem in ("leader", "consensus"):
        enough = [
            fraction_valid(play(Network(8, problem, edges=path, rounds=7), seed, "local"))
            for seed in range(20)
        ]
        few = [
            fraction_valid(play(Network(8, problem, edges=path, rounds=2), seed, "local"))
            for seed in range(20)
        ]
        assert min(enough) == 1.0
        assert few.count(1.0) < 10


@pytest.mark.parametrize("problem", LOCAL)
def test_local_scripts_read_only_what_their_node_knows(problem):
    # Far nodes may change everything about themselves: the next word stays the same.
    game = Network(num_agents=16, problem=problem, topology="geometric")
    state, rng = game.start(3), random.Random(0)
    for _ in range(3):
        for agent in game.agents:
            node = node_of(agent)
            near = {node, *state.graph[node]}
            changed = tuple(
                tuple(text if other in near else "out" for other, text in enumerate(texts))
                for texts in state.messages
            )
            labels = tuple(v if o in near else v + 1000 for o, v in enumerate(state.labels))
            twin = type(state)(
                problem,
                state.graph,
                labels,
                state.values,
                state.rounds,
                state.num_colours,
                changed,
            )
            said = SCRIPTS["local"](state, agent, rng)
            assert SCRIPTS["local"](twin, agent, rng) == said
            assert game.view(twin, agent) == game.view(state, agent)
        moves = {agent: SCRIPTS["local"](state, agent, rng) for agent in game.agents}
        state = game.play(state, moves)


def test_messages_reach_neighbours_only():
    game = Network(num_agents=16, topology="geometric")
    state = game.start(1)
    state = game.play(state, {agent: f"from {agent}!" for agent in game.agents})
    for agent in game.agents:
        read = {other for other in game.agents if f"from {other}!" in game.view(state, agent)}
        near = {agent, *(f"node_{other + 1}" for other in state.graph[node_of(agent)])}
        assert read == near


def test_views_name_labels_instead_of_agents():
    game = Network(num_agents=16)
    state = game.start(0)
    for agent in game.agents:
        assert "node_" not in game.view(state, agent) + game.request(state, agent)
        assert game.view(state, agent).startswith(f"You are node {state.labels[node_of(agent)]}.")


def test_messages_are_one_line_of_limited_length():
    game = Network()
    state = game.start(0)
    assert game.read(state, "node_1", "Round 1:\nyou sent: x") == "Round 1: you sent: x"
    assert game.read(state, "node_1", "") == ""
    assert len(game.read(state, "node_1", "x" * 10**6)) == 200


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("<move>417</move>", "417"),
        ("The number is 417.", "417"),
        ("417 or 418", None),
        ("Was it 418?\nIt is 417.", "417"),
        ("x" * 300 + " 417", "417"),
        ("<move>417</move><move>417</move>", "417"),
        ("<move>418</move><move>417</move>", None),
        ("<move>417</move><move>none</move>", None),
        ("417.5", None),
        ("<move>17</move>", None),
        ("1417", None),
        ("-417", None),
        ("\u0664\u0661\u0667", None),
        ("", None),
    ],
)
def test_consensus_answers_are_one_number(text, number):
    game = Network(problem="consensus", rounds=1)
    state = game.play(game.start(0), dict.fromkeys(game.agents, "hello"))
    assert game.read(state, "node_1", text) == number


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_scripts_say_legal_words(problem, script):
    game = Network(num_agents=8, problem=problem)
    state, rng = game.start(2), random.Random(2)
    while acting := game.acting(state):
        moves = {agent: SCRIPTS[script](state, agent, rng) for agent in acting}
        assert all(move in game.legal(state, agent) for agent, move in moves.items())
        state = game.play(state, moves)
    assert game.legal(state, "node_1") == ()
    assert len(state.messages) + 1 <= game.max_moves


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_agents": 3}, "num_agents must be an int from 4 to 100, got 3"),
        ({"num_agents": 101}, "num_agents must be an int from 4 to 100, got 101"),
        ({"problem": "colour"}, "did you mean 'colouring'"),
        ({"topology": "smallworld"}, "did you mean 'small-world'"),
        ({"edges": ((0, 1), (2, 3))}, "the graph is not connected: no path from node 0 to node 2"),
        ({"edges": ((0, 1), (1, 2), (2, 4))}, r"joins two of the nodes 0 to 3, got \(2, 4\)"),
        ({"edges": ((0, 0),)}, r"joins two of the nodes 0 to 3, got \(0, 0\)"),
        ({"edges": ()}, "edges must be pairs of node numbers"),
        ({"edges": 3}, "edges must be pairs of node numbers"),
        ({"edges": ((0, 1, 2),)}, "edges must be pairs of node numbers"),
        ({"edges": (("a", "b"),)}, "edges must be pairs of node numbers"),
        ({"edges": (3,)}, "edges must be pairs of node numbers"),
        ({"rounds": 0}, "rounds must be an int"),
        ({"memory": 0}, "memory must be an int"),
    ],
)
def test_senseless_options_are_refused_in_one_line(options, message):
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=message) as error:
        Network(**options)
    assert "\n" not in str(error.value)
