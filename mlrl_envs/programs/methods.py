"""Methods in texts and syntax trees: parsing of answers, and classification of bodies.

Functions accept any text; no code is executed. If a code block does not parse as a whole (a
truncated answer, wrong indentation), its methods are parsed one by one, so that one broken method
does not invalidate the others.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlrl_envs.parsing.code_blocks import BYTE_ORDER_MARK, code_blocks
from mlrl_envs.parsing.text import (
    MAX_CODE_CHARS,
    FunctionNode,
    bound_names,
    contributes,
    parse_code,
    shorten,
    unparse,
)
from mlrl_envs.tasks import Work

__all__ = [
    "FoundMethods",
    "class_in",
    "find_methods",
    "functions_in",
    "is_incomplete",
    "label_of",
    "method_key",
    "work_of",
]

MAX_LABEL_CHARS = 60
MAX_LABELS = 20

_DEF = re.compile(r"(\s*)(?:async\s+)?def\s+(\w+)")
_CLASS = re.compile(r"(\s*)class\s+(\w+)")
_DECORATOR = re.compile(r"\s*@")
_ACCESSORS = ("setter", "getter", "deleter")
# Calls of these with constant arguments are constant.
_MAKERS = frozenset(
    {
        *("bool", "bytes", "complex", "dict", "Exception", "float", "frozenset", "int", "len"),
        *("list", "object", "print", "range", "set", "str", "tuple"),
    }
)


@dataclass
class FoundMethods:
    """The methods in an answer.

    Attributes:
        methods: The last definition of each function at module level or in the class, by key.
        beside: Imports, other classes and assignments at module level.
        others: Short labels of all other statements there.
        errors: Parse errors.
    """

    methods: dict[str, FunctionNode] = field(default_factory=dict)
    beside: list[ast.stmt] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def class_in(tree: ast.Module, name: str) -> ast.ClassDef | None:
    """Return the last top-level class of that name."""
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return found[-1] if found else None


def functions_in(node: ast.ClassDef) -> dict[str, FunctionNode]:
    """Return the methods of a class by key, in order; of equal keys the last counts."""
    return {method_key(item): item for item in node.body if isinstance(item, FunctionNode)}


def method_key(function: FunctionNode) -> str:
    """Return the name of a method, `"name.setter"` for other accessors of a property."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Attribute) and decorator.attr in _ACCESSORS:
            return f"{function.name}.{decorator.attr}"
    return function.name


def is_incomplete(function: FunctionNode) -> bool:
    """Return whether a body only has a docstring, `pass`, `...` or NotImplementedError."""
    return all(_is_idle(node) or _is_not_implemented(node) for node in function.body)


def work_of(function: FunctionNode) -> Work:
    """Classify a body: it does nothing, the same for all arguments, or real work.

    A body does real work if it reads a parameter, an import or a name from outside. Builtins that
    create constants from constants, and expressions in a `raise`, do not count.
    """
    if is_incomplete(function) or all(
        _is_idle(node) or isinstance(node, ast.Raise) or _returns_none(node)
        for node in function.body
    ):
        return "nothing"
    own: set[str] = set()
    for node in _ignoring_raises(function.body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
    constants = (own | _MAKERS) - _parameters(function) - _imported(function)
    reads = (
        node.id
        for node in _ignoring_raises(function.body)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    return "constant" if all(name in constants for name in reads) else "real"


def find_methods(text: str, class_name: str) -> FoundMethods:
    """Return the functions of an answer at module level and in `class_name`, over all code blocks.

    Args:
        text: The answer.
        class_name: The class to complete; functions of other classes do not count.
    """
    found = FoundMethods()
    blocks = code_blocks(text)
    sources = blocks or [text.removeprefix(BYTE_ORDER_MARK)]
    if sum(map(len, sources)) > MAX_CODE_CHARS:
        found.errors.append(f"more than {MAX_CODE_CHARS} characters of code")
        return found
    for source in sources:
        parsed = parse_code(textwrap.dedent(source))
        if parsed.tree is not None:
            _collect(parsed.tree.body, class_name, found)
        elif not _collect_pieces(source, class_name, found) and blocks:
            found.errors.append(parsed.error)
    found.others[MAX_LABELS:] = []
    found.errors[MAX_LABELS:] = []
    return found


def _collect(body: Sequence[ast.stmt], class_name: str, found: FoundMethods) -> None:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            if node.keywords or node.decorator_list:
                found.others.append(f"decorators and keywords of class {class_name}")
            _collect_functions(node.body, found)
        elif contributes(node) and not isinstance(node, FunctionNode):
            found.beside.append(node)
        else:
            _collect_functions([node], found)


def _collect_functions(body: Sequence[ast.stmt], found: FoundMethods) -> None:
    for node in body:
        if isinstance(node, FunctionNode):
            if unparse([node]) is None:
                found.errors.append(f"{node.name} is nested too deeply")
            else:
                found.methods[method_key(node)] = node
        elif not _is_idle(node):
            found.others.append(label_of(node))


def _collect_pieces(source: str, class_name: str, found: FoundMethods) -> bool:
    pieces = list(_pieces(source.split("\n"), class_name))
    for name, piece in pieces:
        parsed = parse_code(textwrap.dedent(piece))
        if parsed.tree is None:
            found.errors.append(f"{name}, {parsed.error}")
        else:
            _collect_functions(parsed.tree.body, found)
    return bool(pieces)


def _pieces(lines: Sequence[str], class_name: str) -> Iterator[tuple[str, str]]:
    """Yield name and source of each method, found by indentation."""
    owner, depth, number = class_name, 0, 0
    while number < len(lines):
        if header := _CLASS.match(lines[number]):
            owner, depth = header[2], len(header[1])
        start = _DEF.match(lines[number])
        if start is None:
            number += 1
            continue
        end = _end_of_function(lines, number, len(start[1]))
        if owner == class_name or len(start[1]) <= depth:
            yield start[2], "\n".join(lines[_first_decorator(lines, number) : end])
        number = end


def _first_decorator(lines: Sequence[str], number: int) -> int:
    while number and _DECORATOR.match(lines[number - 1]):
        number -= 1
    return number


def _end_of_function(lines: Sequence[str], number: int, indent: int) -> int:
    # The signature ends with the first line that ends in a colon; the body consists of the lines
    # that are indented at least as deep as its first line.
    while number < len(lines) and not lines[number].split("#")[0].rstrip().endswith(":"):
        if not lines[number].strip():
            return number
        number += 1
    number += 1
    deepest = None
    while number < len(lines):
        line = lines[number]
        if line.strip():
            here = len(line) - len(line.lstrip())
            deepest = here if deepest is None else deepest
            if here < deepest or here <= indent:
                break
        number += 1
    return min(number, len(lines))


def label_of(node: ast.stmt) -> str:
    """Return a short text that names a statement."""
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    text = unparse([node]) or type(node).__name__
    return shorten(text.split("\n")[0], MAX_LABEL_CHARS).replace("\n", " ")


def _is_idle(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _is_not_implemented(node: ast.stmt) -> bool:
    raised = node.exc if isinstance(node, ast.Raise) else None
    called = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(called, ast.Name) and called.id == "NotImplementedError"


def _returns_none(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Return):
        return False
    return node.value is None or (
        isinstance(node.value, ast.Constant) and node.value.value in (None, ...)
    )


def _ignoring_raises(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if not isinstance(node, ast.Raise):
            yield node
            stack.extend(ast.iter_child_nodes(node))


def _parameters(function: FunctionNode) -> set[str]:
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def _imported(function: FunctionNode) -> set[str]:
    imports = (node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom))
    return {name for node in imports for name in bound_names(node)}
