"""Thread-safe construction of syntax trees.

Python 3.11 counts the depth of all trees under construction in one counter for all threads, and
raises SystemError when two threads parse at the same time. A lock prevents that.
"""

import ast
import threading
import warnings

__all__ = ["parse_module"]

_one_at_a_time = threading.Lock()


def parse_module(source: str) -> ast.Module:
    """Return the syntax tree of a module; warnings about the source are suppressed.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: If `source` is not valid Python.
    """
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)
