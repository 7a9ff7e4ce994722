"""Examples in the docstring of a problem, as assert statements.

They are the public tests: the prompt shows them, so that feedback about them reveals nothing.
Recognised forms, as found in HumanEval and CoopHumanEval: doctests (`>>> f(1)` or `>>> n = 1` and
its output; `>>> f(1) == 2`), `f(1) == 2` and the same with `==>`, `=>`, `->`, `➞`, `=`, "returns",
"should return", `# =>`; "For n = 3 the output should be 4"; "Input: n = 3" with "Output: 4".
Examples whose arguments or results are not literals are left out. Examples are read from the source
of the prompt, in which escape sequences are not evaluated.
"""

import ast
import re
from collections.abc import Iterator

__all__ = ["public_examples"]

_SEPARATOR = re.compile(
    r"\s*(?:#\s*)?(?:==>|==|=>|->|➞|=(?!=)|should return|returns?\b|should be)\s*"
)
_FOR = re.compile(
    r"[Ff]or\s+(?P<inputs>\w+\s*=.+?),?\s+"
    r"(?:the sum of digits will be \d+ )?the (?:output|result) should be\s*(?P<value>.+)"
)
_INPUT = re.compile(r"[Ii]nput:\s*(?P<inputs>.+)")
_OUTPUT = re.compile(r"[Oo]utput:\s*(?P<value>.+)")
_TRAILING = re.compile(r"\s*(?:[.,;]?\s*$|#|\(|\.\s)")
_WORDS = {"true": "True", "false": "False"}
_MAX_LINES = 12


def public_examples(prompt: str, entry_point: str) -> tuple[str, ...]:
    """Return the prompt's examples as `assert f(...) == value`, in order, each once."""
    start = prompt.rfind(f"def {entry_point}(")
    lines = prompt[start:].split("\n")[1:] if start >= 0 else []
    found: list[str] = []
    for number in range(len(lines)):
        for example in _examples_at(lines, number, entry_point):
            if example not in found:
                found.append(example)
    return tuple(found)


def _examples_at(lines: list[str], number: int, name: str) -> Iterator[str]:
    line = lines[number].strip()
    if line.startswith(">>>"):
        example = _doctest(lines, number, name)
    elif match := _FOR.search(line):
        example = _assertion(_call_of(name, match["inputs"]), _value(match["value"]))
    elif match := _INPUT.match(line):
        example = _input_output(match["inputs"], lines[number + 1 :], name)
    else:
        example = _inline(lines, number, name)
    if example:
        yield example


def _doctest(lines: list[str], number: int, name: str) -> str | None:
    source = lines[number].strip()[3:].strip()
    # `>>> numbers = [1, 2]` with the result below assigns the argument instead of calling.
    tree = _expression(source) or _call_of(name, source)
    if tree is None:
        return None
    if isinstance(tree, ast.Compare):
        if len(tree.ops) != 1 or not isinstance(tree.ops[0], ast.Eq):
            return None
        return _assertion(tree.left, _literal(tree.comparators[0]), name)
    wanted: list[str] = []
    for line in lines[number + 1 :]:
        text = line.strip()
        if not text or text.startswith((">>>", '"""', "'''")):
            break
        wanted.append(text)
    # As in doctest, no output means that the call returns None.
    value = _value(" ".join(wanted)) if wanted else ("None",)
    return _assertion(tree, value, name)


def _inline(lines: list[str], number: int, name: str) -> str | None:
    match = re.search(rf"(?<![\w.]){re.escape(name)}\(", lines[number])
    if match is None:
        return None
    text = "\n".join([lines[number][match.start() :], *lines[number + 1 : number + _MAX_LINES]])
    call, rest = _leading_call(text)
    if call is None:
        return None
    separator = _SEPARATOR.match(rest)
    if separator is None:
        return None
    return _assertion(call, _value(rest[separator.end() :]), name)


def _input_output(inputs: str, following: list[str], name: str) -> str | None:
    for line in following[:4]:
        if match := _OUTPUT.match(line.strip()):
            return _assertion(_call_of(name, inputs), _value(match["value"]))
    return None


def _leading_call(text: str) -> tuple[ast.expr | None, str]:
    for end, char in enumerate(text):
        if char == ")":
            tree = _expression(text[: end + 1])
            if isinstance(tree, ast.Call):
                return tree, text[end + 1 :]
    return None, ""


def _call_of(name: str, inputs: str) -> ast.expr | None:
    # `arr = [1, 2], k = 3` assigns arguments by name; pass them in order.
    tree = _expression(f"{name}({inputs.strip().rstrip('.,')})")
    if not isinstance(tree, ast.Call) or tree.args:
        return None
    return ast.Call(tree.func, [keyword.value for keyword in tree.keywords], [])


def _assertion(
    call: ast.expr | None, value: tuple[str] | None, name: str | None = None
) -> str | None:
    if call is None or value is None:
        return None
    inner = call
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "round":
        inner = call.args[0] if call.args else call
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Name):
        return None
    if name is not None and inner.func.id != name:
        return None
    if inner.keywords or any(_literal(argument) is None for argument in inner.args):
        return None
    return f"assert {ast.unparse(call)} == {value[0]}"


def _value(text: str) -> tuple[str] | None:
    """Parse a literal at the start of `text`: the rest of the line, or brackets over lines."""
    lines = text.split("\n")
    first = _line_value(lines[0])
    if first is not None or not lines[0].strip().startswith(("[", "(", "{")):
        return first
    for count in range(2, min(len(lines), _MAX_LINES) + 1):
        value = _literal(_expression(" ".join(line.strip() for line in lines[:count])))
        if value is not None:
            return value
    return None


def _line_value(line: str) -> tuple[str] | None:
    line = line.strip().rstrip(".")  # a full stop, not a decimal point
    line = _WORDS.get(line.lower(), line)
    for end in range(len(line), 0, -1):
        value = _literal(_expression(line[:end]))
        if value is not None and _TRAILING.match(line[end:]):
            return value
    # In `f(3) == 1 + 9 = 10` the result is the last number.
    _, equals, result = line.rpartition("=")
    return _line_value(result) if equals and result.strip() else None


def _literal(tree: ast.expr | None) -> tuple[str] | None:
    if tree is None:
        return None
    try:
        return (repr(ast.literal_eval(tree)),)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _expression(source: str) -> ast.expr | None:
    try:
        return ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
