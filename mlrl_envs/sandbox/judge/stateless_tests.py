"""Which tests leave nothing behind, so that one judge process may run many of them in turn.

Forking a judge costs more than most tests do. Tests that only compute (HumanEval's, MBPP's)
share a standing judge; tests that patch, import or touch anything beyond a short list get a
process of their own. When in doubt, they are not plain.
"""

import ast
import sys
from functools import lru_cache

from mlrl_envs.parsing.syntax import parse_module

__all__ = ["is_plain"]

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
# Statements and expressions that may change something that outlives the tests.
FORBIDDEN_NODES = (ast.Global, ast.Nonlocal, ast.ClassDef, ast.AsyncFunctionDef, ast.Await)


@lru_cache(maxsize=4096)
def is_plain(tests: str, helpers: str) -> bool:
    """Return whether trusted tests and helpers change nothing outside their own names."""
    return all(_is_plain(parse_module(source)) for source in (tests, helpers))


def _is_plain(tree: ast.Module) -> bool:
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
        # A module's bare name is imported for the tests if they forgot to.
        module = node.id in sys.stdlib_module_names and node.id not in MODULES
        return not (module or node.id in FORBIDDEN_NAMES or node.id.startswith("__"))
    return True
