"""Building syntax trees, safe from many threads.

Python 3.11 counts the depth of all trees that are being built in one counter for all threads, and
raises SystemError when two of them are built at once.
"""

import ast
import threading
import warnings

__all__ = ["parse_module"]

_one_at_a_time = threading.Lock()


def parse_module(source: str) -> ast.Module:
    """Return the syntax tree of a module; what it warns of is its author's business.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: If `source` is no Python.
    """
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)
