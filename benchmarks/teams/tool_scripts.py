"""Scripts for questions about cargo with tools: they act on what agents read, not on the answer.

The researcher knows the entry of a ship, finds it in the archive, and writes the number of crates
to a file. The solver knows the weight of a crate, reads the file, multiplies, and answers.
"""

import json
import re
from collections.abc import Callable, Mapping

__all__ = ["TOOL_SCRIPTS"]

Observations = Mapping[str, str]
FILE, WAIT = "crates", "waiting"
ENTRY = re.compile(r"entered as (KX-\d+)")
WEIGHT = re.compile(r"weighs ([\d.]+) kg")
READ = re.compile(r'read_file\("path": "crates"\)\n(\d+)')
PRODUCT = re.compile(r"calculator\([^\n]*\)\n([\d.]+)")


def _careful(observed: Observations) -> dict[str, str]:
    """Return the next call of each agent, or the answer."""
    return {agent: CAREFUL[agent](text) for agent, text in observed.items()}


def _hasty(observed: Observations) -> dict[str, str]:
    """Return a guess of the solver: the weight of one crate."""
    return {
        agent: _answer(_first(WEIGHT, text)) if agent == "solver" else WAIT
        for agent, text in observed.items()
    }


def _research(text: str) -> str:
    entry = _first(ENTRY, text)
    found = re.search(rf"\[{entry.lower()}\][^\n]* with (\d+) crates", text)
    if found is None:
        return _call("search", query=f"Register entry {entry}")
    if " bytes" not in text:
        return _call("write_file", path=FILE, content=found[1])
    return WAIT


def _solve(text: str) -> str:
    product, crates = PRODUCT.search(text), READ.search(text)
    if product is not None:
        return _answer(product[1])
    if crates is not None:
        return _call("calculator", expression=f"{crates[1]} * {_first(WEIGHT, text)}")
    if text.count(WAIT) >= 2:  # by then the researcher has written the file
        return _call("read_file", path=FILE)
    return WAIT


def _call(tool: str, **parameters: str) -> str:
    return f"<tool_call>{json.dumps({'name': tool, 'parameters': parameters})}</tool_call>"


def _answer(value: str) -> str:
    return f"<answer>{value}</answer>"


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""


CAREFUL: Mapping[str, Callable[[str], str]] = {"researcher": _research, "solver": _solve}
TOOL_SCRIPTS: Mapping[str, Callable[[Observations], dict[str, str]]] = {
    "careful": _careful,
    "hasty": _hasty,
}
"""Scripts that return the answers of all agents from what each of them reads, by name."""
