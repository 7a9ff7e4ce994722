"""Insertion of the methods of several coders into one class, on syntax trees.

The skeleton is the program; an answer contributes the methods assigned to its author, and the
imports, helper functions, helper methods, classes and constants beside them if their names are new.
The skeleton determines how a method is reached: its position, name, decorators, `async`, and its
parameters if their names agree; base classes, attributes and complete methods are also the
skeleton's. Operators, examples of use, other statements and methods of others are left out and
reported, except methods of others without a body, as a repeated skeleton has them.
"""

import ast
import copy
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from mlrl_envs.parsing.syntax import parse_module
from mlrl_envs.parsing.text import FunctionNode, bound_names, names_read, unparse
from mlrl_envs.programs.class_answer import ClassAnswer, is_import, own_work
from mlrl_envs.programs.methods import (
    FoundMethods,
    class_in,
    find_methods,
    functions_in,
    is_incomplete,
    label_of,
    method_key,
    work_of,
)
from mlrl_envs.tasks import ClassTask, Work
from mlrl_envs.types import AgentID

__all__ = ["ClassAnswer", "MergedClass", "merge", "read_answer", "splice"]

# Annotations may use names whose imports are left out, so they must not be evaluated.
_HEAD = parse_module("from __future__ import annotations").body[0]
# Decorators that an answer may add if the skeleton has none.
KEPT_DECORATORS = ("staticmethod", "classmethod")
_DEPTH: tuple[Work, ...] = ("nothing", "constant", "real")


@dataclass(frozen=True)
class MergedClass:
    """The program of a joint action.

    Attributes:
        answers: The contribution of each coder, in their order.
        source: The program, or None if no method was delivered or it cannot be unparsed.
        error: Why it cannot be unparsed; empty if it can.
    """

    answers: Mapping[AgentID, ClassAnswer]
    source: str | None
    error: str = ""


def merge(
    task: ClassTask,
    owners: Mapping[AgentID, Sequence[str]],
    actions: Mapping[AgentID, str],
    *,
    with_stubs: bool = False,
) -> MergedClass:
    """Merge a joint action into the skeleton.

    Args:
        task: The class.
        owners: The methods of each coder.
        actions: The answers.
        with_stubs: Whether stubs are inserted, too, and methods whose work a teammate may do.
    """
    answers = {agent: read_answer(task, own, actions[agent]) for agent, own in owners.items()}
    if not with_stubs:
        answers = own_work(answers)
    methods: dict[str, FunctionNode] = {}
    helpers: dict[str, FunctionNode] = {}
    beside: list[ast.stmt] = []
    for answer in answers.values():
        methods |= answer.methods if not with_stubs else {**answer.methods, **answer.stubs}
        helpers = {**answer.helpers, **helpers}  # the first of equal names stays
        beside += answer.beside
    if not methods:
        return MergedClass(answers, None)
    source = splice(task.skeleton, task.class_name, methods, helpers, beside)
    return MergedClass(answers, source, "" if source else "nested too deeply")


def read_answer(task: ClassTask, own: Sequence[str], text: str) -> ClassAnswer:
    """Return the methods `own` of an answer, and its other content."""
    found = find_methods(text, task.class_name)
    needed = {method.name: method.work for method in task.methods}
    written = _named(found, own)
    # A stub does nothing, or the same for all arguments, although the reference does more.
    mine = {name: written[name] for name in own if name in written}
    stubs = {name: node for name, node in mine.items() if _is_less(node, needed[name])}
    theirs = [name for name in written if name in needed and name not in own]
    signatures = [name for name in theirs if is_incomplete(written[name])]
    helpers, beside, dropped = _sort_helpers(task, found, written)
    return ClassAnswer(
        tuple(own),
        {name: node for name, node in mine.items() if name not in stubs},
        stubs,
        tuple(name for name in theirs if name not in signatures),
        tuple(signatures),
        helpers,
        tuple(beside),
        (*dropped, *found.others),
        tuple(found.errors),
    )


def _sort_helpers(
    task: ClassTask, found: FoundMethods, written: Mapping[str, FunctionNode]
) -> tuple[dict[str, FunctionNode], list[ast.stmt], list[str]]:
    """Return helper methods, statements for the module, and labels of what is left out."""
    skeleton = parse_module(task.skeleton)
    taken = {name for node in skeleton.body for name in bound_names(node)}
    target = class_in(skeleton, task.class_name)
    given = functions_in(target) if target else {}
    helpers: dict[str, FunctionNode] = {}
    functions: list[ast.stmt] = []
    dropped: list[str] = []
    for name, node in written.items():
        if name in given:
            # The skeleton's own text, repeated, is nothing that was left out.
            if not is_incomplete(node) and name not in {m.name for m in task.methods}:
                dropped += [f"method {name}"] * (ast.dump(node) != ast.dump(given[name]))
        elif name.startswith("__") or "." in name:
            dropped.append(f"method {name}")
        elif node.decorator_list or _parameter_names(node)[:1] in (["self"], ["cls"]):
            helpers[name] = node
        elif name not in taken:
            functions.append(node)
    beside, left_out = _sort_statements(found.beside, taken, task.class_name)
    imports = [statement for statement in beside if is_import(statement)]
    rest = [statement for statement in beside if not is_import(statement)]
    return helpers, [*imports, *functions, *rest], [*dropped, *map(label_of, left_out)]


def _sort_statements(
    statements: Sequence[ast.stmt], taken: Set[str], class_name: str
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return the statements for the module, which run before the class, and those left out.

    Left out are examples of use, such as `x = Thing()` or `x = input()`, and what needs them.
    """
    kept: list[ast.stmt] = []
    left_out: list[ast.stmt] = []
    later = {class_name, "input"}
    for statement in statements:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            continue
        is_new = is_import(statement) or not bound_names(statement) & taken
        if unparse([statement]) is None or not is_new:
            left_out.append(statement)
        elif later & set(names_read(statement)):
            left_out.append(statement)
            later |= bound_names(statement)
        else:
            kept.append(statement)
            later -= bound_names(statement)
    return kept, left_out


def splice(
    skeleton: str,
    class_name: str,
    methods: Mapping[str, FunctionNode],
    helpers: Mapping[str, FunctionNode] | None = None,
    beside: Sequence[ast.stmt] = (),
) -> str | None:
    """Return the skeleton with some of its methods replaced.

    Args:
        skeleton: Source that parses and defines the class.
        class_name: Name of the class.
        methods: The new methods, by `method_key`; keys that the class lacks are ignored.
        helpers: Further methods.
        beside: Statements for the module; they are inserted before the class.

    Returns:
        The source, or None if it is nested too deeply to be unparsed.
    """
    tree = parse_module(skeleton)
    target = class_in(tree, class_name)
    if target is None:
        return skeleton
    places = functions_in(target)
    target.body = [
        _fitted(methods[method_key(node)], node)
        if isinstance(node, FunctionNode)
        and method_key(node) in methods
        and places[method_key(node)] is node
        else node
        for node in target.body
    ]
    target.body += (helpers or {}).values()
    place = tree.body.index(target)
    tree.body[place:place] = beside
    if not any(isinstance(node, ast.ImportFrom) and _is_head(node) for node in tree.body):
        documented = ast.get_docstring(tree) is not None
        tree.body.insert(int(documented), _HEAD)
    source = unparse(tree.body)
    return None if source is None else source + "\n"


def _is_head(node: ast.ImportFrom) -> bool:
    names = [alias.name for alias in node.names]
    return node.module == "__future__" and names == ["annotations"]


def _named(found: FoundMethods, own: Sequence[str]) -> dict[str, FunctionNode]:
    # `def size(self, value)` without a decorator is the setter if its author owns only that.
    named: dict[str, FunctionNode] = {}
    for key, function in found.methods.items():
        meant = [name for name in own if name.split(".")[0] == key]
        named[meant[0] if key not in own and len(meant) == 1 else key] = function
    return named


def _is_less(function: FunctionNode, needed: Work) -> bool:
    return _DEPTH.index(work_of(function)) < _DEPTH.index(needed)


def _fitted(method: FunctionNode, place: FunctionNode) -> FunctionNode:
    is_async = isinstance(method, ast.AsyncFunctionDef) or isinstance(place, ast.AsyncFunctionDef)
    kind = ast.AsyncFunctionDef if is_async else ast.FunctionDef
    fields: dict[str, Any] = {name: getattr(method, name, None) for name in method._fields}
    fitted = ast.copy_location(kind(**fields), method)
    fitted.name = place.name
    fitted.decorator_list = place.decorator_list or [
        node for node in method.decorator_list if ast.unparse(node) in KEPT_DECORATORS
    ]
    if _parameter_names(method) == _parameter_names(place):
        fitted.args = copy.deepcopy(place.args)
    return fitted


def _parameter_names(function: FunctionNode) -> list[str]:
    return [node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)]
