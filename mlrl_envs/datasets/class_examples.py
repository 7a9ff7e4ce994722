"""Docstring examples of a class as `unittest` methods.

They are the public tests of class completion: the skeleton shows them, so that feedback about them
reveals nothing. The doctest session of a method is one test; a result is compared if it is a
literal, other lines only run. If a session uses one undefined name and the class can be created
without arguments, that name becomes an instance; sessions that need more are left out.
"""

import ast
import builtins
import doctest
import textwrap
from collections.abc import Collection, Mapping, Sequence

from mlrl_envs.parsing.syntax import parse_module
from mlrl_envs.parsing.text import FunctionNode, bound_names

__all__ = ["PUBLIC_CASE", "class_examples", "public_case"]

PUBLIC_CASE = "DocstringExamples"


def class_examples(
    class_name: str, methods: Mapping[str, FunctionNode], known: Collection[str]
) -> dict[str, str]:
    """Return the body of a test for each method whose docstring can be tested.

    Args:
        class_name: Name of the class.
        methods: All its methods as in the skeleton, including the constructor.
        known: Names that the imports of the tests bind.
    """
    constructor = methods.get("__init__")
    ready = f"{class_name}()" if constructor is None or _needs_nothing(constructor) else ""
    bodies = {
        name: _session(ast.get_docstring(function) or "", {class_name, *known}, ready)
        for name, function in methods.items()
    }
    return {name: body for name, body in bodies.items() if body}


def public_case(bodies: Sequence[tuple[str, str]]) -> str:
    """Return the source of a `TestCase` with one test for each body, run in that order."""
    tests = [
        f"    def test_{number:02}_{name.replace('.', '_')}(self):\n"
        + textwrap.indent(body, " " * 8)
        for number, (name, body) in enumerate(bodies)
    ]
    return "\n\n".join([f"class {PUBLIC_CASE}(unittest.TestCase):", *tests]) if tests else ""


def _session(docstring: str, known: Collection[str], ready: str) -> str:
    try:
        examples = doctest.DocTestParser().get_examples(docstring)
        lines = [_line(example.source.strip(), example.want.strip()) for example in examples]
        tree = parse_module("\n".join(lines))
    except (ValueError, SyntaxError):
        return ""
    if not any(line.startswith("self.assert") for line in lines):
        return ""
    missing = _missing(tree, known)
    if missing and not (len(missing) == 1 and ready):
        return ""
    return "\n".join([*(f"{name} = {ready}" for name in missing), *lines])


def _line(source: str, want: str) -> str:
    if want and isinstance(parse_module(source).body[0], ast.Expr) and _is_literal(want):
        return f"self.assertEqual({source}, {want})"
    return source


def _is_literal(text: str) -> bool:
    try:
        (node,) = parse_module(text).body
        ast.literal_eval(getattr(node, "value", node))
    except (ValueError, SyntaxError):
        return False
    return isinstance(node, ast.Expr)


def _missing(tree: ast.Module, known: Collection[str]) -> set[str]:
    bound = {"self", *known, *dir(builtins)}.union(*map(bound_names, tree.body))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names - bound


def _needs_nothing(constructor: FunctionNode) -> bool:
    arguments = constructor.args
    needed = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return needed == 1 and None not in arguments.kw_defaults
