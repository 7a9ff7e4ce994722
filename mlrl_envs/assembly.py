"""Joint actions of the coding families to one program: pure, and found in the syntax tree.

Program = the problem's imports and helper functions + what each agent may contribute, helpers
first, the main function last. An answer contributes its imports, functions, classes and constant
assignments; anything else at module level is left out. A name belongs to one agent: only `aux`
defines `aux`, only `main` the entry point, and nobody the problem's helpers.

It does not cover running the program, nor whether it is right.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mlrl_envs.parsing import (
    FunctionNode,
    bound_names,
    extract_code,
    find_function,
    parse_code,
    returns_value,
    unparse,
)
from mlrl_envs.types import AgentID, CodeTask

__all__ = [
    "Answer",
    "JointProgram",
    "Usage",
    "assemble",
    "is_thin_wrapper",
    "is_trivial",
    "read_answer",
    "replace_function",
    "usage_of",
]

Usage = Literal["missing", "uncalled", "ignored", "wrapped", "used"]


@dataclass(frozen=True)
class Answer:
    """What one agent contributes.

    Attributes:
        name: The function it was asked for.
        source: Its contribution, or "" where it has none.
        function: The definition of `name`, or None if it is missing.
        error: Why the answer does not parse; empty where it does.
        dropped: Names that it tried to bind although they belong to others.
    """

    name: str
    source: str
    function: FunctionNode | None
    error: str = ""
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class JointProgram:
    """The joint action, assembled.

    Attributes:
        answers: What each agent contributes, helpers first.
        source: The whole program, or None if the entry point is missing or it does not parse.
        error: Why it does not parse, if so.
    """

    answers: Mapping[AgentID, Answer]
    source: str | None
    error: str = ""


def assemble(
    task: CodeTask, functions: Mapping[AgentID, str], actions: Mapping[AgentID, str]
) -> JointProgram:
    """Assemble one program of a joint action.

    Args:
        task: The problem.
        functions: The function each agent owns, in the order of the program.
        actions: What each agent wrote.
    """
    owned = {*functions.values(), *task.helper_names}
    answers = {
        agent: read_answer(actions[agent], name, reserved=owned - {name})
        for agent, name in functions.items()
    }
    if any(a.function is None for a in answers.values() if a.name == task.entry_point):
        return JointProgram(answers, None)
    source = "\n\n".join(filter(None, [task.prelude, *(a.source for a in answers.values())])) + "\n"
    parsed = parse_code(source)
    return JointProgram(answers, source if parsed.tree else None, parsed.error)


def read_answer(text: str, name: str, *, reserved: set[str] | frozenset[str]) -> Answer:
    """Find in a text the function `name` and what belongs to it, without `reserved` names."""
    code = extract_code(text, [name])
    if code.tree is None:
        return Answer(name, "", None, code.error)
    kept, dropped = [], set[str]()
    for statement in code.tree.body:
        if not _contributes(statement):
            continue
        taken = bound_names(statement) & reserved
        dropped |= taken
        if not taken:
            kept.append(statement)
    source = unparse(kept)
    if source is None:
        return Answer(name, "", None, "nested too deeply")
    function = find_function(ast.Module(kept, []), name)
    return Answer(name, source, function, "", tuple(sorted(dropped)))


def usage_of(main: FunctionNode | None, name: str) -> Usage:
    """Say what `main` does with the helper `name`, by its syntax tree."""
    if main is None:
        return "missing"
    if _rebinds(main, name) or not any(_is_call(node, name) for node in ast.walk(main)):
        return "uncalled"
    if is_thin_wrapper(main, name):
        return "wrapped"
    return "ignored" if _ignores(main, name) else "used"


def is_thin_wrapper(main: FunctionNode, name: str) -> bool:
    """Return whether `main` only returns `name(...)`, or assigns it and returns that variable."""
    body = [node for node in main.body if not _is_noise(node)]
    if len(body) == 1 and isinstance(body[0], ast.Return):
        return body[0].value is not None and _is_call(body[0].value, name)
    if len(body) != 2 or not isinstance(body[1], ast.Return):
        return False
    target, value = _assignment(body[0])
    returned = body[1].value
    return (
        value is not None
        and _is_call(value, name)
        and isinstance(returned, ast.Name)
        and returned.id == target
    )


def is_trivial(function: FunctionNode | None) -> bool:
    """Return whether a helper does no work: it returns nothing, a constant or a bare parameter."""
    if function is None:
        return True
    body = [node for node in function.body if not _is_noise(node)]
    if not returns_value(function):
        return True
    if len(body) != 1 or not isinstance(body[0], ast.Return):
        return False
    value = body[0].value
    return value is None or not any(
        isinstance(
            node,
            ast.Call
            | ast.BinOp
            | ast.Compare
            | ast.Subscript
            | ast.BoolOp
            | ast.UnaryOp
            | ast.IfExp
            | ast.ListComp
            | ast.SetComp
            | ast.DictComp
            | ast.GeneratorExp
            | ast.JoinedStr
            | ast.Lambda,
        )
        for node in ast.walk(value)
    )


def replace_function(
    program: str, name: str, replacement: str, *, keep_as: str | None = None
) -> str | None:
    """Return the program with its top-level function `name` replaced by other source.

    Args:
        program: Source that parses.
        name: The function to replace.
        replacement: Source that takes its place.
        keep_as: Keep the original under this name, in front of the replacement.
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
        statements += ast.parse(replacement).body
    return unparse(statements)


def _contributes(statement: ast.stmt) -> bool:
    if isinstance(statement, FunctionNode | ast.ClassDef | ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Name | ast.Tuple) for target in statement.targets)
    return isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)


def _is_noise(statement: ast.stmt) -> bool:
    # Docstrings, bare constants, `pass` and imports do no work of their own.
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    return isinstance(statement, ast.Pass | ast.Import | ast.ImportFrom)


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _assignment(statement: ast.stmt) -> tuple[str, ast.expr | None]:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return (target.id, statement.value) if isinstance(target, ast.Name) else ("", None)
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id, statement.value
    return "", None


def _rebinds(main: FunctionNode, name: str) -> bool:
    arguments = main.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    if any(parameter.arg == name for parameter in parameters):
        return True
    for node in ast.walk(main):
        if isinstance(node, FunctionNode | ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name) == name:
            return True
    return False


def _ignores(main: FunctionNode, name: str) -> bool:
    # Ignored: every call is a statement of its own, or goes to variables that are never read.
    read = {
        node.id
        for node in ast.walk(main)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    calls = sum(_is_call(node, name) for node in ast.walk(main))
    wasted = 0
    for node in ast.walk(main):
        if isinstance(node, ast.Expr) and _is_call(node.value, name):
            wasted += 1
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target, value = _assignment(node)
            if value is not None and _is_call(value, name) and target not in read:
                wasted += 1
    return wasted == calls
