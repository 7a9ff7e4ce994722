"""Syntax trees and words in model output.

All functions accept any `str` (a megabyte, NUL characters, lone surrogates, unclosed brackets) and
raise no errors. No code is executed.
"""

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlrl_envs.parsing.code_blocks import BYTE_ORDER_MARK, code_blocks, code_lines
from mlrl_envs.parsing.combining import MAX_MARKS, limit_combining
from mlrl_envs.parsing.syntax import parse_module

__all__ = [
    "MAX_CODE_CHARS",
    "FunctionNode",
    "ParsedCode",
    "blanked",
    "bound_names",
    "contributes",
    "extract_code",
    "find_function",
    "names_read",
    "parse_code",
    "printable",
    "returns_value",
    "shorten",
    "unparse",
    "words",
]

MAX_CODE_CHARS = 50_000  # far above the length of real answers; bounds the time of the parser
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"\w+")
_NO_WORD = {
    number: " " for number in range(128) if not (chr(number).isalnum() or number == ord("_"))
}


@dataclass(frozen=True)
class ParsedCode:
    """Python source with its syntax tree.

    Attributes:
        text: The source.
        tree: Its syntax tree, or None if it does not parse.
        error: The parse error, such as `"line 3, column 5: invalid syntax"`; empty if it parses.
    """

    text: str
    tree: ast.Module | None
    error: str = ""


def printable(text: str) -> str:
    """Replace lone surrogates by U+FFFD, so that the text can be encoded."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def shorten(text: str, max_chars: int = 4000) -> str:
    """Cut the middle out of a text of more than `max_chars` characters and note the cut length."""
    if len(text) <= max_chars:
        return text
    head, tail = max_chars * 3 // 4, max_chars // 4
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[... {left_out} characters left out ...]\n{text[-tail:]}"


def words(text: str) -> list[str]:
    r"""Return the lower-case `\w+` words of a text, in order."""
    lower = text.lower()
    if lower.isascii():  # equal result, three times faster
        return blanked(lower).split()
    return _WORD.findall(lower)


def blanked(text: str) -> str:
    """Return an ASCII text in lower case, with spaces for all characters outside of words."""
    return text.lower().translate(_NO_WORD)


def extract_code(text: str, name: str) -> ParsedCode:
    """Return the code of an answer.

    The order of preference is: the last fenced block that defines `name`, the last that contains
    `def name` but does not parse, the last that parses, the last. Without fences the raw text is
    treated in the same way, with and without the prose around the code.

    Args:
        text: The output of a model.
        name: The function that the answer should define.
    """
    blocks = [_parse_block(block) for block in code_blocks(text)]
    if not blocks:
        text = text.removeprefix(BYTE_ORDER_MARK)
        blocks = [parse_code(code_lines(text)), parse_code(text)]
    defining = [block for block in blocks if block.tree and find_function(block.tree.body, name)]
    meaning = [block for block in blocks if f"def {name}" in block.text]
    parsing = [block for block in blocks if block.tree and block.tree.body]
    return next(found[-1] for found in (defining, meaning, parsing, blocks) if found)


def _parse_block(block: str) -> ParsedCode:
    parsed = parse_code(block)
    if parsed.tree is not None or not block[:1].isspace():
        return parsed
    outdented = parse_code(textwrap.dedent(block))
    return parsed if outdented.tree is None else outdented


def parse_code(source: str) -> ParsedCode:
    """Parse Python; source that is too long, too deep or malformed has no tree.

    Nor has source with a run of more than 30 combining marks, which would take seconds to parse.
    """
    if len(source) > MAX_CODE_CHARS:
        return ParsedCode("", None, f"more than {MAX_CODE_CHARS} characters of code")
    if limit_combining(source) != source:
        return ParsedCode(source, None, f"more than {MAX_MARKS} combining marks in a row")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as warnings about invalid escapes
            return ParsedCode(source, parse_module(source))
    except SyntaxError as error:
        place = f"line {error.lineno}, column {error.offset}: " if error.lineno else ""
        return ParsedCode(source, None, printable(place + (error.msg or "invalid syntax")))
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return ParsedCode(source, None, f"{type(error).__name__}: cannot be parsed")


def unparse(nodes: Sequence[ast.stmt]) -> str | None:
    """Return the source of statements, or None if they are nested too deeply."""
    try:
        return ast.unparse(ast.Module(list(nodes), []))
    except (ValueError, RecursionError, MemoryError):
        return None


def find_function(statements: Sequence[ast.stmt], name: str) -> FunctionNode | None:
    """Return the last function of that name among the statements."""
    for node in reversed(statements):
        if isinstance(node, FunctionNode) and node.name == name:
            return node
    return None


def returns_value(function: FunctionNode) -> bool:
    """Return whether a function, without nested ones, returns or yields a value."""
    return any(
        isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and node.value is not None
        for node in _own_nodes(function)
    )


def _own_nodes(function: FunctionNode) -> list[ast.AST]:
    # Nodes in nested functions and classes are left out.
    found: list[ast.AST] = []
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        found.append(node)
        if not isinstance(node, FunctionNode | ast.ClassDef | ast.Lambda):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))
    return found


def bound_names(statement: ast.stmt) -> set[str]:
    """Return the names that a top-level statement binds, as far as its syntax shows."""
    if isinstance(statement, FunctionNode | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)
    }


def names_read(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement reads when it runs, without those in bodies of functions."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    if not isinstance(node, FunctionNode | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from names_read(child)


def contributes(statement: ast.stmt) -> bool:
    """Return whether a module-level statement is an import, a definition or an assignment."""
    if isinstance(statement, FunctionNode | ast.ClassDef | ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Name | ast.Tuple) for target in statement.targets)
    return isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
