"""Code in an answer: fenced blocks, and lines of code between lines of prose.

All functions accept any `str` and raise no errors.
"""

import re
from collections.abc import Sequence

__all__ = ["BYTE_ORDER_MARK", "code_blocks", "code_lines"]

BYTE_ORDER_MARK = "\ufeff"

_FENCE = re.compile(r"^([ \t]{0,3})(`{3,}|~{3,})[ \t]*([\w+.-]*)")
_DEEP_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([\w+.-]*)")
_CODE_LANGUAGES = frozenset({"", "python", "py", "python3"})
_CODE_START = re.compile(r"(?:def|async def|class|import|from)\s|@\w")
_CODE_LINE = re.compile(
    r"\s|$|[#)\]}@]|(?:def|async|class|import|from|if|elif|else|for|while|try|except|finally|with)\b"
    r"|\w+\s*(?::[^=]+)?="
)
# Begins code in an answer whose fences are incomplete.
_STATEMENT = re.compile(r"\s*(?:(?:def|async def|class|import|from|assert)\s|@\w|\w+\s*=[^=])")


def code_blocks(text: str) -> list[str]:
    """Return the content of fenced Python or unmarked blocks; the last fence may be unclosed.

    The indentation of a fence, as in an item of a list, is removed from the lines of its block. A
    first fence that only closes a block is taken for the end of a block that the prompt opened. A
    block that no line closes ends at the first line of code that ends with a fence.
    """
    lines = _opened(text.removeprefix(BYTE_ORDER_MARK).split("\n"))
    pattern = _fence_pattern(lines)
    blocks: list[str] = []
    fence, indent, body, wanted = "", 0, [""], False
    for line in lines:
        match = pattern.match(line)
        if not fence and match:
            fence, indent, body = match[2], len(match[1]), []
            wanted = match[3].lower() in _CODE_LANGUAGES
        elif fence and match and match[2].startswith(fence) and line.strip() == match[2]:
            if wanted:
                blocks.append(_without_indent(body, indent))
            fence = ""
        elif fence:
            body.append(line)
    if fence and wanted:
        blocks.append(_without_indent(_closed(body, fence), indent))
    return blocks


def code_lines(text: str) -> str:
    """Return the code of a text without fences: from its first line to the next line of prose."""
    kept: list[str] = []
    for line in text.split("\n"):
        if kept and not _CODE_LINE.match(line):
            break
        if kept or _CODE_START.match(line):
            kept.append(line)
    return "\n".join(kept)


def _fence_pattern(lines: Sequence[str]) -> re.Pattern[str]:
    # Fences in nested lists are indented deeply. So are fences in docstrings, which follow code.
    for line in lines:
        if _FENCE.match(line) or _STATEMENT.match(line):
            return _FENCE
        if _DEEP_FENCE.match(line):
            return _DEEP_FENCE
    return _FENCE


def _closed(body: list[str], fence: str) -> list[str]:
    """Return an unclosed body up to the first line that ends with the only fence of the line."""
    for number, line in enumerate(body):
        code = line.rstrip().removesuffix(fence)
        if line.count(fence) == 1 and len(code) < len(line.rstrip()):
            return [*body[:number], code]
    return body


def _without_indent(body: Sequence[str], indent: int) -> str:
    # Code that does not start below its fence keeps its own indentation.
    first = next((line for line in body if line.strip()), "")
    if first[:indent].strip():
        indent = 0
    return "\n".join(line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in body)


def _opened(lines: list[str]) -> list[str]:
    """Insert the opening fence if the first fence of an answer closes code."""
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)][:2]
    bare = [not lines[number].strip().strip("`~") for number in fences]
    if bare not in ([True], [True, False]):
        return lines
    first = fences[0]
    end = fences[1] if len(fences) > 1 else len(lines)
    start = next((n for n in range(first) if _STATEMENT.match(lines[n])), None)
    if start is None or any(_STATEMENT.match(line) for line in lines[first + 1 : end]):
        return lines
    while start and _CODE_LINE.match(lines[start - 1]):
        start -= 1
    return [*lines[:start], lines[first].strip(), *lines[start:]]
