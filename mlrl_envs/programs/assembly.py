"""Assembly of the functions of several agents into one program, on syntax trees.

The program consists of the imports and helper functions of the problem, the contributions of the
helpers and, last, that of the main function. An answer contributes its imports, functions, classes
and assignments; other module-level statements are left out, and so are assignments that read input,
as examples of use do. A name belongs to one agent: only `aux` defines `aux`, only `main` the entry
point, and no agent the helpers of the problem. An answer must define its function; a bare body or a
continuation of the prompt does not count.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from mlrl_envs.parsing.syntax import parse_module
from mlrl_envs.parsing.text import (
    FunctionNode,
    bound_names,
    contributes,
    extract_code,
    find_function,
    names_read,
    parse_code,
    unparse,
)
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import AgentID

__all__ = ["FunctionAnswer", "JointProgram", "assemble", "read_answer", "replace_function"]


@dataclass(frozen=True)
class FunctionAnswer:
    """The contribution of one agent.

    Attributes:
        name: The function that the agent was asked for.
        statements: The statements that it contributes; may be empty.
        function: The definition of `name`, or None if it is missing.
        error: Why the answer does not parse; empty if it parses.
        dropped: Names of others that the answer tried to bind.
    """

    name: str
    statements: tuple[ast.stmt, ...] = ()
    function: FunctionNode | None = None
    error: str = ""
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class JointProgram:
    """The program of a joint action.

    Attributes:
        answers: The contribution of each agent, helpers first.
        source: The program, or None if the entry point is missing or it does not parse.
        error: Why it does not parse; empty if it parses.
    """

    answers: Mapping[AgentID, FunctionAnswer]
    source: str | None
    error: str = ""


def assemble(
    task: CodeTask, functions: Mapping[AgentID, str], actions: Mapping[AgentID, str]
) -> JointProgram:
    """Assemble the program of a joint action.

    Args:
        task: The problem.
        functions: The function that each agent owns, in the order of the program.
        actions: The answers.
    """
    owned = {*functions.values(), *task.helper_names}
    answers = {
        agent: read_answer(actions[agent], name, reserved=owned - {name})
        for agent, name in functions.items()
    }
    if any(a.function is None for a in answers.values() if a.name == task.entry_point):
        return JointProgram(answers, None)
    statements = [node for answer in answers.values() for node in answer.statements]
    # An import from __future__ must be the first statement of the program.
    head = unparse([node for node in statements if _is_future(node)])
    rest = unparse([node for node in statements if not _is_future(node)])
    source = "\n\n".join(filter(None, [head, task.prelude, rest])) + "\n"
    parsed = parse_code(source)
    return JointProgram(answers, source if parsed.tree else None, parsed.error)


def read_answer(
    text: str, name: str, *, reserved: AbstractSet[str] = frozenset()
) -> FunctionAnswer:
    """Return the function `name` of an answer with the other statements that it contributes.

    Args:
        text: The answer.
        name: The function that the agent was asked for.
        reserved: Names that it must not bind; statements that bind them are left out.
    """
    code = extract_code(text, name)
    if code.tree is None:
        return FunctionAnswer(name, error=code.error)
    offered = [_as_function(node, name) for node in code.tree.body if contributes(node)]
    kept = tuple(node for node in offered if not bound_names(node) & reserved)
    if unparse(kept) is None:
        return FunctionAnswer(name, error="nested too deeply")
    kept = tuple(_without_input(kept))
    bound = {taken for node in offered for taken in bound_names(node)}
    function = find_function(kept, name)
    return FunctionAnswer(name, kept, function, dropped=tuple(sorted(bound & reserved)))


def replace_function(
    program: str, name: str, replacement: str, *, keep_as: str | None = None
) -> str | None:
    """Return the program with the top-level function `name` replaced, or None if it does not parse.

    Args:
        program: The source of the program.
        name: The function to replace.
        replacement: Source that replaces it.
        keep_as: If given, the original function is kept under this name before the replacement.
    """
    parsed = parse_code(program)
    if parsed.tree is None:
        return None
    statements: list[ast.stmt] = []
    for node in parsed.tree.body:
        if not (isinstance(node, FunctionNode) and node.name == name):
            statements.append(node)
            continue
        if keep_as is not None:
            node.name = keep_as
            statements.append(node)
        statements += parse_module(replacement).body
    return unparse(statements)


def _as_function(statement: ast.stmt, name: str) -> ast.stmt:
    """Return `name = lambda ...` as a definition, any other statement as it is."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Lambda):
        return statement
    if ast.unparse(statement.targets[0]) != name or len(statement.targets) != 1:
        return statement
    (function,) = parse_module(f"def {name}():\n    return 0").body
    if isinstance(function, ast.FunctionDef):
        function.args = statement.value.args
        function.body = [ast.Return(statement.value.body)]
    return ast.fix_missing_locations(function)


def _without_input(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, without those that read input while the program loads or need it."""
    missing = {"input"}
    for statement in statements:
        if missing & set(names_read(statement)):
            missing |= bound_names(statement)
        else:
            missing -= bound_names(statement)
            yield statement


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
