"""Model text to code blocks, syntax trees, words: total and pure.

Every function takes any `str` (a megabyte, NUL characters, lone surrogates, endless brackets) and
never raises. Nothing here runs code. What it does not cover: whether a program loads or is right.
"""

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from mlrl_envs.parsing.syntax import parse_module

__all__ = [
    "MAX_CODE_CHARS",
    "FunctionNode",
    "ParsedCode",
    "blanked",
    "bound_names",
    "code_blocks",
    "extract_code",
    "find_function",
    "parse_code",
    "printable",
    "returns_value",
    "shorten",
    "unparse",
    "words",
]

MAX_CODE_CHARS = 50_000  # far above any answer of a model; keeps the parser's time bounded
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_SURROGATE = re.compile("[\ud800-\udfff]")
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([\w+.-]*)")
_CODE_LANGUAGES = frozenset({"", "python", "py", "python3"})
_CODE_START = re.compile(r"(?:def|async def|class|import|from)\s|@\w")
_CODE_LINE = re.compile(
    r"\s|$|[#)\]}@]|(?:def|async|class|import|from|if|elif|else|for|while|try|except|finally|with)\b"
    r"|\w+(?:\s*:[^=]+)?\s*="
)
_WORD = re.compile(r"\w+")
_NO_WORD = {
    number: " " for number in range(128) if not (chr(number).isalnum() or number == ord("_"))
}


@dataclass(frozen=True)
class ParsedCode:
    """A piece of Python as text and as a tree.

    Attributes:
        text: The source.
        tree: Its syntax tree, or None where it does not parse.
        error: Why it does not, as `"line 3, column 5: invalid syntax"`; empty where it does.
    """

    text: str
    tree: ast.Module | None
    error: str = ""


def printable(text: str) -> str:
    """Replace lone surrogates by U+FFFD, so that the text can be written anywhere."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def shorten(text: str, max_chars: int = 4000) -> str:
    """Cut the middle out of a long text and say how much is gone."""
    if len(text) <= max_chars:
        return text
    head, tail = max_chars * 3 // 4, max_chars // 4
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[... {left_out} characters left out ...]\n{text[-tail:]}"


def words(text: str) -> list[str]:
    r"""Return the lower-case `\w+` words of a text, in order."""
    lower = text.lower()
    if lower.isascii():  # the same, at a third of the cost
        return blanked(lower).split()
    return _WORD.findall(lower)


def blanked(text: str) -> str:
    """Return a text of ASCII characters in lower case, with spaces for all between its words."""
    return text.lower().translate(_NO_WORD)


def code_blocks(text: str) -> list[str]:
    """Return the bodies of fenced Python (or unmarked) blocks; a last fence may stay open."""
    blocks: list[str] = []
    fence, body, wanted = "", [""], False
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if not fence and match:
            fence, wanted, body = match[1], match[2].lower() in _CODE_LANGUAGES, []
        elif fence and match and match[1].startswith(fence) and line.strip() == match[1]:
            if wanted:
                blocks.append("\n".join(body))
            fence = ""
        elif fence:
            body.append(line)
    if fence and wanted:
        blocks.append("\n".join(body))
    return blocks


def extract_code(text: str, name: str) -> ParsedCode:
    """Find the code that an answer means.

    The last fenced block that defines `name` wins, then the last that means to (it does not parse),
    then the last that parses, then the last. Without fences the raw text is read the same way, as
    it is or without the prose around it.

    Args:
        text: What a model wrote.
        name: The function that the answer should define.
    """
    blocks = [parse_code(block) for block in code_blocks(text)]
    if not blocks:
        blocks = [parse_code(_code_lines(text)), parse_code(text)]
    defining = [block for block in blocks if block.tree and find_function(block.tree.body, name)]
    meaning = [block for block in blocks if f"def {name}" in block.text]
    parsing = [block for block in blocks if block.tree and block.tree.body]
    return next(found[-1] for found in (defining, meaning, parsing, blocks) if found)


def parse_code(source: str) -> ParsedCode:
    """Parse Python; what is too long, too deep or malformed comes back without a tree."""
    if len(source) > MAX_CODE_CHARS:
        return ParsedCode("", None, f"more than {MAX_CODE_CHARS} characters of code")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes are the model's business
            return ParsedCode(source, parse_module(source))
    except SyntaxError as error:
        place = f"line {error.lineno}, column {error.offset}: " if error.lineno else ""
        return ParsedCode(source, None, printable(place + (error.msg or "invalid syntax")))
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return ParsedCode(source, None, f"{type(error).__name__}: cannot be parsed")


def unparse(nodes: Sequence[ast.stmt]) -> str | None:
    """Return source of statements, or None if they nest too deeply."""
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
    """Return whether the function, nested ones apart, has a `return` or `yield` with a value."""
    return any(
        isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and node.value is not None
        for node in _own_nodes(function)
    )


def _own_nodes(function: FunctionNode) -> list[ast.AST]:
    # The nodes of a function's body without those of functions and classes inside it.
    found: list[ast.AST] = []
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        found.append(node)
        if not isinstance(node, FunctionNode | ast.ClassDef | ast.Lambda):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))
    return found


def bound_names(statement: ast.stmt) -> set[str]:
    """Return the names that a top-level statement binds, as far as its tree tells."""
    if isinstance(statement, FunctionNode | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)
    }


def _code_lines(text: str) -> str:
    # Prose around unfenced code: keep from the first line that starts code to the next prose line.
    kept: list[str] = []
    for line in text.split("\n"):
        if kept and not _CODE_LINE.match(line):
            break
        if kept or _CODE_START.match(line):
            kept.append(line)
    return "\n".join(kept)
