"""Programs that inspect their interpreter, end their process or wait, found in the syntax tree.

A list has the names of what they use. An attribute or an import of these counts, a text that is no
docstring, and a name that the program does not bind. In a program that can look up names by their
text, as with `getattr`, or that binds unknown names, as `import *` does, every name counts. A text
that a program puts together is not found.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from mlrl_envs.parsing.text import parse_code

__all__ = ["inspects"]

_BUILTINS = frozenset({"globals", "locals", "vars"})
_MODULES = frozenset({"builtins", "gc", "inspect", "signal"})
_NAME = re.compile(
    r"\b(?:_getframe|_current_frames|settrace|setprofile|_exit|abort|kill|sleep)\b"
    # Docstrings may have any text, so that none may be read.
    r"|__(?:code|closure|globals|defaults|qualname|traceback|subclasses|builtins|import|doc)__"
)
_TEXT = re.compile(
    rf"{_NAME.pattern}|\b(?:globals|locals|vars)\(|\b(?:import|from) (?:{'|'.join(_MODULES)})\b"
)
_BY_TEXT = frozenset(
    {
        *("exec", "eval", "getattr", "import_module", "attrgetter", "methodcaller"),
        *("__dict__", "__getattribute__", "__match_args__"),
        "*",  # as in `from os import *`
    }
)


def inspects(source: str) -> bool:
    """Return whether a program inspects its interpreter, ends its process or waits.

    Its variables, parameters, functions and docstrings may have any name and text. Source that does
    not parse counts as inspecting.
    """
    tree = parse_code(source).tree
    if tree is None:
        return True
    nodes = list(ast.walk(tree))
    read = {node.id for node in nodes if isinstance(node, ast.Name)}
    reached = {name for node in nodes for name in _reached(node)}
    by_text = bool((read | reached) & _BY_TEXT)
    given = {name for node in nodes if (name := _given(node))}
    foreign = read | given if by_text else read - {n for n in given if not n.startswith("__")}
    called = {getattr(node.func, "id", "") for node in nodes if isinstance(node, ast.Call)}
    return (
        any(_NAME.fullmatch(name) for name in foreign | reached)
        or bool((foreign | called) & _BUILTINS)
        or bool(_modules(nodes) & _MODULES)
        or any(_TEXT.search(text) or (by_text and text in _MODULES) for text in _texts(nodes))
    )


def _reached(node: ast.AST) -> Sequence[str]:
    """Return the names that a node looks up in an object or a module."""
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.alias):
        return node.name.split(".")
    return node.kwd_attrs if isinstance(node, ast.MatchClass) else ()


def _given(node: ast.AST) -> str | None:
    """Return the name that a node gives to a value, an argument or a definition."""
    if isinstance(node, ast.alias):
        return node.asname
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    return getattr(node, "name", None) or getattr(node, "arg", None)


def _modules(nodes: Sequence[ast.AST]) -> set[str]:
    """Return the top-level packages that a program imports."""
    names: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return {name.split(".")[0] for name in names}


def _texts(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the texts of a program, without those that stand alone, as docstrings do."""
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in alone:
            if isinstance(node.value, bytes):
                yield node.value.decode("latin-1")
            elif isinstance(node.value, str):
                yield node.value
