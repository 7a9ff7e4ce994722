"""Workflows: environments whose agents are the nodes of a graph over another environment.

A graph says who reads whom and in which steps the nodes write (`mlrl_envs.workflows.graph`); named
graphs are in `mlrl_envs.workflows.shapes`. Nothing here knows a task or a model.
"""

from mlrl_envs.workflows.drawing import describe, facts_of
from mlrl_envs.workflows.env import as_graph, workflow
from mlrl_envs.workflows.family import WorkflowFamily
from mlrl_envs.workflows.files import is_graph_file, read_graph, with_graph
from mlrl_envs.workflows.graph import Graph, Node, Repeat
from mlrl_envs.workflows.prompts import prompt_of
from mlrl_envs.workflows.shapes import SHAPES, shape
from mlrl_envs.workflows.steps import Progress, choose, follow

__all__ = [
    "SHAPES",
    "Graph",
    "Node",
    "Progress",
    "Repeat",
    "WorkflowFamily",
    "as_graph",
    "choose",
    "describe",
    "facts_of",
    "follow",
    "is_graph_file",
    "prompt_of",
    "read_graph",
    "shape",
    "with_graph",
    "workflow",
]
