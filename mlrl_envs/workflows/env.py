"""Environments of workflows, and graphs from names, mappings and YAML values."""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.types import AgentID
from mlrl_envs.workflows.checks import MAX_NODES, MAX_STEPS, check_length, checked
from mlrl_envs.workflows.drawing import facts_of
from mlrl_envs.workflows.family import WorkflowFamily
from mlrl_envs.workflows.files import is_graph_file, read_graph
from mlrl_envs.workflows.graph import Condition, Graph, Node, Repeat, Step
from mlrl_envs.workflows.shapes import SHAPES, shape
from mlrl_envs.workflows.steps import verdict_of

__all__ = ["as_graph", "workflow"]

NODE_KEYS = ("agent", "reads", "role", "prompt", "first", "plays", "when", "unless")
REPEAT_KEYS = ("repeat", "steps", "until")
GRAPH_KEYS = ("nodes", "steps", "combine", "pay")


def workflow(env: Any, graph: "Graph | Mapping[str, Any] | str") -> TextParallelEnv:  # noqa: ANN401  any environment
    """Return an environment whose agents are the nodes of a graph over another environment.

    In each turn of `env`, nodes write in the steps of the graph, which are turns of the new
    environment; then the answers of the last nodes are played. The new environment has the tasks,
    seeds and rewards of `env`, and does not change it.

    Args:
        env: An environment of `mlrl_envs.make`, or another `TextParallelEnv`.
        graph: A name of `SHAPES`; a mapping with `shape` and its options; a mapping with `nodes`,
            and, if they do not follow from who reads whom, `steps`; the path of a YAML file with
            such a mapping, which ends in `.yaml` or `.yml`; or a `Graph`.

    Raises:
        UnknownNameError: If a shape, a node, an agent or a key does not exist.
        InvalidArgumentError: If the graph cannot be played, see `mlrl_envs.workflows.checks`, its
            file cannot be read, or `env` is not a `TextParallelEnv`.
    """
    if not isinstance(env, TextParallelEnv):
        raise InvalidArgumentError(
            f"a workflow needs a TextParallelEnv, whose family it can replay, got {env!r}"
        )
    drawn = as_graph(graph, env.possible_agents)
    family = WorkflowFamily(env.family, drawn)
    made = TextParallelEnv(
        family, env_id=env.metadata["name"], sandbox=env.sandbox, render_mode=env.render_mode
    )
    made.metadata = {**env.metadata, **made.metadata, "workflow": facts_of(drawn)}
    return made


def as_graph(value: "Graph | Mapping[str, Any] | str", agents: Sequence[AgentID]) -> Graph:
    """Return a checked graph; see `workflow` for arguments and errors."""
    if is_graph_file(value):
        value = read_graph(str(value))
    if isinstance(value, str):
        return checked(shape(value, agents), agents)
    if isinstance(value, Graph):
        return checked(value, agents)
    if isinstance(value, Mapping) and "shape" in value:
        options = {str(name): given for name, given in value.items() if name != "shape"}
        return checked(shape(value["shape"], agents, **options), agents)
    if isinstance(value, Mapping) and "nodes" in value:
        return checked(_graph(value), agents)
    raise InvalidArgumentError(
        f"a workflow is one of {', '.join(SHAPES)}, a YAML file, or a mapping with shape or nodes, "
        f"got {value!r}"
    )


def _graph(value: Mapping[str, Any]) -> Graph:
    _check_keys("key of a workflow", value, GRAPH_KEYS)
    given = _mapping("nodes", value["nodes"])
    listed = _list("steps", value.get("steps") or ())
    check_length("nodes", given, MAX_NODES)
    check_length("steps", listed, MAX_STEPS)
    nodes = {name: _node(name, each) for name, each in given.items()}
    steps: list[Step] = []
    for each in listed:
        if isinstance(each, Mapping):
            steps.append(_repeat(each, nodes))
        else:
            steps.append(_names("steps", each))
    return Graph(
        tuple(nodes.values()),
        tuple(steps),
        combine=value.get("combine", "last"),
        pay=value.get("pay", "all"),
    )


def _node(name: str, value: object) -> Node:
    options = dict(_mapping(f"node {name!r}", value or {}))
    _check_keys(f"key of node {name!r}", options, NODE_KEYS)
    for key in ("role", "prompt", "first"):
        if not isinstance(options.get(key, ""), str):
            raise InvalidArgumentError(
                f"{key} of node {name!r} must be a text, got {options[key]!r}"
            )
    if not isinstance(options.get("plays", False), bool):
        raise InvalidArgumentError(f"plays of node {name!r} must be true or false")
    for key in ("when", "unless"):
        if key in options:
            options[key] = _conditions(f"{key} of node {name!r}", options[key])
    reads = _names(f"reads of node {name!r}", options.get("reads", ()))
    options["reads"] = tuple(dict.fromkeys(reads))
    return Node(name, **options)


def _repeat(value: Mapping[str, Any], nodes: dict[str, Node]) -> Repeat:
    """Return repeated steps; `until` is a condition of all nodes in them."""
    _check_keys("key of repeated steps", value, REPEAT_KEYS)
    steps = tuple(
        _names("steps of a repeat", each)
        for each in _list("steps of a repeat", value.get("steps") or ())
    )
    until = _conditions("until", value.get("until") or {})
    for name in {name for step in steps for name in step} & nodes.keys() if until else ():
        node = nodes[name]
        nodes[name] = Node(**{**vars(node), "unless": (*node.unless, *until)})
    return Repeat(steps, value.get("repeat", 1))


def _conditions(name: str, value: object) -> tuple[Condition, ...]:
    found = _mapping(name, value)
    # A verdict without a letter or digit would be that of an empty answer.
    if not all(isinstance(verdict, str) and verdict_of(verdict) for verdict in found.values()):
        raise InvalidArgumentError(f"{name} must map nodes to verdicts, got {value!r}")
    return tuple(found.items())


def _names(name: str, value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else _list(name, value)
    if not all(isinstance(each, str) for each in names):
        raise InvalidArgumentError(f"{name} must name nodes, got {value!r}")
    return tuple(names)


def _list(name: str, value: object) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidArgumentError(f"{name} must be a list, got {value!r}")
    return value


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"{name} must be a mapping, got {value!r}")
    return value


def _check_keys(kind: str, value: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in value:
        if key not in known:
            raise unknown_name(kind, key, known)
