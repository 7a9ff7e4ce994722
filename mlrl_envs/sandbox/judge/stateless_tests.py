"""Detection of stateless tests, many of which may run in the same judge process.

Forking a judge takes longer than most tests. Tests that only compute (those of HumanEval and MBPP)
share one reused judge. Tests that patch objects, import modules beyond a short list, or could
change the process in another way get a judge process of their own; in case of doubt, too.
"""

import ast
import sys
from functools import lru_cache

from mlrl_envs.parsing.syntax import parse_module

__all__ = ["are_stateless"]

MODULES = frozenset(
    {
        *("math", "random", "copy", "string", "itertools", "functools", "collections", "re"),
        *("typing", "heapq", "bisect", "operator", "fractions", "statistics", "datetime"),
        *("cmath", "numbers"),
    }
)
FORBIDDEN_NAMES = frozenset(
    {
        *("exec", "eval", "compile", "open", "setattr", "delattr", "globals", "locals", "vars"),
        *("input", "breakpoint", "exit", "quit", "getattr", "memoryview", "help", "type"),
        *("super", "print"),
    }
)
# Statements and expressions that may change state that outlives the tests.
FORBIDDEN_NODES = (ast.Global, ast.Nonlocal, ast.ClassDef, ast.AsyncFunctionDef, ast.Await)


@lru_cache(maxsize=4096)
def are_stateless(tests: str, helpers: str) -> bool:
    """Return whether trusted tests and helpers change no state outside their own namespace."""
    return all(_is_stateless(parse_module(source)) for source in (tests, helpers))


def _is_stateless(tree: ast.Module) -> bool:
    imported = {name for node in ast.walk(tree) for name in _imports(node)}
    return all(map(_is_harmless, ast.walk(tree))) and imported <= MODULES


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "" if not node.level else ""]
    return []


def _is_harmless(node: ast.AST) -> bool:
    if isinstance(node, FORBIDDEN_NODES):
        return False
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and not node.attr.startswith("_")
    if isinstance(node, ast.Name):
        # The plan imports standard modules that the tests name but do not import.
        module = node.id in sys.stdlib_module_names and node.id not in MODULES
        return not (module or node.id in FORBIDDEN_NAMES or node.id.startswith("__"))
    return True
