"""Network problems: agents are the nodes of a graph and talk to their neighbours only.

All agents send a message to their neighbours at the same time, for several rounds; then all answer
at the same time.

Agents:
    `node_1` to `node_<num_agents>`, 4 to 100. In observations nodes have random numbers. With the
    default `seats="fixed"`, `node_1`, `node_2`, ... follow each other on the ring of a small-world
    graph, so that a policy with weights for each agent can learn constant answers: 3, 2, 3, 1 earns
    0.94 of `colouring` with four agents. With `seats="random"` neither the name of an agent nor the
    order of neighbours tells a place, and constant answers earn 0.65. The first agent as `leader`
    needs no message in either case.

Observation:
    The problem, the node's number and those of its neighbours, and the messages of the last
    `memory` rounds.

Action:
    In a round of messages any text, of which 200 characters are sent. Then an answer.

    | problem | an answer is valid if |
    |---|---|
    | `colouring` | no neighbour has the same of D + 1 colours, D being the largest degree |
    | `cover` | out: all neighbours are in; in: a neighbour is out (minimal vertex cover) |
    | `matching` | the partner names the node; none: all neighbours have partners |
    | `leader` | exactly one of all nodes says yes |
    | `consensus` | it is the number of some node, and no other such number has more votes |

Reward:
    All agents earn the share of valid nodes, after the answers. Solved: all nodes are valid.

Scripts:
    `random`, `silent` (the first legal word), `local` (greedy by number, or flooding; honest),
    `central` (reads the whole graph, always right).

Measures:
    The share of valid nodes, and whether all are valid.

Data:
    Graphs are drawn from the seed: `small-world` (Newman and Watts), `scale-free` (Barabasi and
    Albert), `geometric` (nearest points of a square), or given by `edges`. After F. Grötschla et
    al., "AgentsNet: Coordination and Collaborative Reasoning in Multi-Agent LLMs",
    arXiv:2507.08616. Different here: a message goes to all neighbours; consensus is about numbers
    that single nodes know, because a constant answer would agree without any message.

Version history:
    v0: First version.

Example:
    env = mlrl_envs.make("mlrl/network-v0", num_agents=8, problem="leader")
    observations, infos = env.reset(seed=0)
    while env.agents:
        actions = {agent: "I am here" for agent in env.agents}
        observations, rewards, *_ = env.step(actions)
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from mlrl_envs.config import check_choice, check_int
from mlrl_envs.games.base import Game, Script, answer_parts, message_of
from mlrl_envs.games.chance import below, generator, shuffled
from mlrl_envs.games.family import GameFamily
from mlrl_envs.games.graphs import (
    TOPOLOGIES,
    checked_edges,
    diameter,
    graph_of_edges,
    make_graph,
    renumbered,
)
from mlrl_envs.games.network_scripts import SCRIPTS
from mlrl_envs.games.network_state import (
    GLOBAL,
    PROBLEMS,
    VALUES,
    NetworkState,
    answers_of,
    fraction_valid,
    node_of,
    valid_nodes,
    words_of,
)
from mlrl_envs.games.options import GameConfig
from mlrl_envs.types import AgentID

__all__ = ["Network", "NetworkConfig", "NetworkFamily", "parallel_env"]

MIN_AGENTS, MAX_AGENTS = 4, 100
_NUMBER = re.compile(r"(?<![\w.-])[1-9][0-9]{2}(?![\w-])(?![.,][0-9])", re.ASCII)


@dataclass(frozen=True)
class Network(Game[NetworkState]):
    """A problem on a connected graph, with an agent for each node.

    Attributes:
        num_agents: Number of agents, 4 to 100.
        problem: A key of `PROBLEMS`.
        topology: The kind of graph drawn from the seed: `"small-world"`, `"scale-free"` or
            `"geometric"`.
        edges: Pairs of nodes, numbered from 0, that replace the drawn graph.
        rounds: Number of rounds of messages; None for 2 + log2 of the size (local problems) or one
            more than the diameter (global ones).
        memory: Number of past rounds that an agent reads.
        seats: `"fixed"` if agent i is node i of the graph; `"random"` if it is drawn, and
            neighbours are listed by their numbers, not in the order of agents.
    """

    solvable: ClassVar[bool] = True
    cooperative: ClassVar[bool] = True

    num_agents: int = 4
    problem: str = "colouring"
    topology: str = "small-world"
    edges: tuple[tuple[int, int], ...] | None = None
    rounds: int | None = None
    memory: int = 3
    seats: str = "fixed"

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value is outside its range or the graph is not connected.
        """
        check_int("num_agents", self.num_agents, MIN_AGENTS, MAX_AGENTS)
        check_choice("problem", self.problem, tuple(PROBLEMS))
        check_choice("topology", self.topology, tuple(TOPOLOGIES))
        check_int("memory", self.memory, 1, MAX_AGENTS)
        check_choice("seats", self.seats, ("fixed", "random"))
        if self.rounds is not None:
            check_int("rounds", self.rounds, 1, MAX_AGENTS + 1)
        if self.edges is not None:
            object.__setattr__(self, "edges", checked_edges(self.edges))
            graph_of_edges(self.num_agents, self.edges)

    @cached_property
    def agents(self) -> tuple[AgentID, ...]:
        """`node_1` to `node_<num_agents>`."""
        return tuple(f"node_{number}" for number in range(1, self.num_agents + 1))

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1)."""
        return 0.0, 1.0

    @property
    def max_moves(self) -> int:
        """Largest number of rounds, with that of the answers."""
        longest = self.num_agents if self.problem in GLOBAL else self._local_rounds
        return 1 + (self.rounds or longest)

    @property
    def scripts(self) -> Mapping[str, Script[NetworkState]]:
        """`random`, `silent`, `local` and `central`; see `mlrl_envs.games.network_scripts`."""
        return SCRIPTS

    def rules(self, agent: AgentID) -> str:  # noqa: ARG002  the same for all nodes
        """Return what a node can do and what counts."""
        return (
            "You are a node of a network and talk to your neighbours only. "
            f"{PROBLEMS[self.problem]} All nodes earn the share of nodes with a valid answer."
        )

    @property
    def _local_rounds(self) -> int:
        return 2 + math.ceil(math.log2(self.num_agents))

    def start(self, seed: int) -> NetworkState:
        """Draw the graph, the labels, the values, and the seats of agents."""
        rng = generator(seed)
        graph = make_graph(self.topology, self.num_agents, rng)
        if self.edges is not None:
            graph = graph_of_edges(self.num_agents, self.edges)
        rounds = self.rounds or (
            1 + diameter(graph) if self.problem in GLOBAL else self._local_rounds
        )
        labels = tuple(shuffled(VALUES, rng)[: self.num_agents])
        values = tuple(VALUES[below(len(VALUES), rng)] for _ in range(self.num_agents))
        num_colours = 1 + max(map(len, graph))
        if self.seats == "random":
            graph = renumbered(graph, shuffled(range(self.num_agents), rng))
        return NetworkState(self.problem, graph, labels, values, rounds, num_colours)

    def acting(self, state: NetworkState) -> tuple[AgentID, ...]:
        """Return all agents, and none after the answers."""
        return () if state.answers else self.agents

    def legal(self, state: NetworkState, agent: AgentID) -> tuple[str, ...]:
        """Return the answers, or before the last step messages in words that scripts know."""
        if state.answers:
            return ()
        if len(state.messages) == state.rounds:
            return answers_of(state, node_of(agent))
        return words_of(state, node_of(agent))

    def read(self, state: NetworkState, agent: AgentID, text: str) -> str | None:
        """Return a message in one line, or the answer that a text names."""
        if len(state.messages) < state.rounds:
            return message_of(text)
        if self.problem != "consensus":
            return super().read(state, agent, text)
        named = [set(_NUMBER.findall(part)) for part in answer_parts(text)]
        is_clear = all(len(numbers) == 1 for numbers in named)
        found = {number for numbers in named for number in numbers}
        return found.pop() if is_clear and len(found) == 1 else None

    def play(self, state: NetworkState, moves: Mapping[AgentID, str]) -> NetworkState:
        """Deliver the messages of all agents, or accept their answers."""
        texts = tuple(moves[agent] for agent in self.agents)
        if len(state.messages) == state.rounds:
            return replace(state, answers=texts)
        return replace(state, messages=(*state.messages, texts))

    def returns(self, state: NetworkState) -> dict[AgentID, float]:
        """Return the fraction of valid nodes for every agent; 0 before the answers."""
        return dict.fromkeys(self.agents, fraction_valid(state))

    def solved(self, state: NetworkState) -> bool:
        """Return whether the answers of all nodes are valid."""
        return bool(state.answers) and all(valid_nodes(state))

    def figures(self, state: NetworkState) -> Mapping[str, float]:
        """Return the share of valid nodes, and whether all are."""
        return {"valid": fraction_valid(state), "solved": float(self.solved(state))}

    def view(self, state: NetworkState, agent: AgentID) -> str:
        """Return the node's label, its neighbours, what it knows and the latest messages."""
        node = node_of(agent)
        others = self._listed(state, node)
        near = ", ".join(str(state.labels[other]) for other in others)
        lines = [f"You are node {state.labels[node]}. Your neighbours: {near}."]
        if state.problem == "colouring":
            lines.append(f"Colours: 1 to {state.num_colours}.")
        elif state.problem == "consensus":
            lines.append(f"Your number: {state.values[node]}.")
        first = max(0, len(state.messages) - self.memory)
        for number, texts in enumerate(state.messages[first:], start=first + 1):
            lines.append(f"Round {number}: you sent: {texts[node]}")
            lines += [f"{state.labels[other]} sent: {texts[other]}" for other in others]
        if state.answers:
            lines.append(f"You answered {state.answers[node]}.")
        return "\n".join(lines)

    def _listed(self, state: NetworkState, node: int) -> tuple[int, ...]:
        """Return the neighbours of a node in an order that tells no seat, if seats are random."""
        others = state.graph[node]
        if self.seats == "fixed":
            return others
        return tuple(sorted(others, key=state.labels.__getitem__))

    def request(self, state: NetworkState, agent: AgentID) -> str:
        """Return the request for the next message or for the answer."""
        played = len(state.messages)
        if played < state.rounds:
            round_ = f"Round {played + 1} of {state.rounds}"
            return f"{round_}: send your neighbours a short message: <move>...</move>"
        if state.problem == "consensus":
            return "Now answer with a number: <move>...</move>"
        return f"Now answer with one of {', '.join(self.legal(state, agent))}: <move>...</move>"


@dataclass(frozen=True)
class NetworkConfig(GameConfig):
    """Options of network problems; those of the graph are described in `Network`.

    Attributes:
        num_agents: Number of agents, 4 to 100.
        problem: `"colouring"`, `"cover"`, `"matching"`, `"leader"` or `"consensus"`.
        topology: The kind of graph: `"small-world"`, `"scale-free"` or `"geometric"`.
        edges: Pairs of nodes, numbered from 0, that replace the drawn graph.
        rounds: Number of rounds of messages; None for as many as simple algorithms need.
        memory: Number of past rounds that an agent reads.
        seats: `"fixed"` or `"random"`, which draws the node of each agent.
    """

    num_agents: int = 4
    problem: str = "colouring"
    topology: str = "small-world"
    edges: tuple[tuple[int, int], ...] | None = None
    rounds: int | None = None
    memory: int = 3
    seats: str = "fixed"


class NetworkFamily(GameFamily[NetworkConfig]):
    """Network problems for 4 to 100 agents."""

    env_id: ClassVar[str] = "mlrl/network-v0"
    config_type: ClassVar[type[GameConfig]] = NetworkConfig
    game_type: ClassVar[type[Network]] = Network


parallel_env = NetworkFamily.make_env
