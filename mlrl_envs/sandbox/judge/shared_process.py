"""Tests that run inside the candidate's process, with decoys against forged results.

Some tests pass live objects to the candidate (an XML element, an open file), which cannot cross a
process boundary. They run in the confined process of the candidate, where the candidate could
forge their results; the outcome therefore has `assurance="shared"`. As a safeguard every method
runs twice under random names: unchanged, and as a decoy whose last assertion is negated. A method
counts as passed only if it passes and its decoy fails. If both pass, the tests were tampered with.
"""

# ruff: noqa: ANN401  values of any type cross the border

import ast
import copy
import random
from dataclasses import dataclass
from typing import Any

from mlrl_envs.sandbox.judge.faults import VerdictError
from mlrl_envs.sandbox.judge.trial import JobFields, Trial

__all__ = ["Twin", "make_twins", "run_shared"]

PAIRS = (
    *(("Equal", "NotEqual"), ("True", "False"), ("Is", "IsNot"), ("In", "NotIn")),
    *(("IsNone", "IsNotNone"), ("Greater", "LessEqual"), ("Less", "GreaterEqual")),
    *(("AlmostEqual", "NotAlmostEqual"), ("IsInstance", "NotIsInstance")),
)
OPPOSITES = {f"assert{a}": f"assert{b}" for pair in PAIRS for a, b in (pair, pair[::-1])}


@dataclass(frozen=True)
class Twin:
    """Random names of a test method and its decoy.

    Attributes:
        name: Name of the record.
        case: Name of the `TestCase` class.
        real: Name of the unchanged method.
        decoy: Name of the method that must fail if `real` passes.
    """

    name: str
    case: str
    real: str
    decoy: str


def make_twins(tests: str, chance: random.Random) -> tuple[str, list[Twin]]:
    """Return the tests with a decoy for every method, and the names of each pair.

    Args:
        tests: Source of the tests.
        chance: Source of the random names and of the order within a pair.
    """
    tree = ast.parse(tests)
    twins: list[Twin] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            node.body = _double(node, chance, twins)
    ast.fix_missing_locations(tree)
    return ast.unparse(tree), twins


def _double(case: ast.ClassDef, chance: random.Random, twins: list[Twin]) -> list[ast.stmt]:
    body: list[ast.stmt] = []
    for item in case.body:
        if not isinstance(item, ast.FunctionDef) or not item.name.startswith("test"):
            body.append(item)
            continue
        decoy = copy.deepcopy(item)
        _invert(decoy)
        name, real, fake = item.name, _tag(chance), _tag(chance)
        item.name, decoy.name = real, fake
        twins.append(Twin(f"{case.name}.{name}", case.name, real, fake))
        body += chance.sample([item, decoy], 2)
    return body


def _tag(chance: random.Random) -> str:
    return f"test_{chance.getrandbits(64):016x}"


def _invert(method: ast.FunctionDef) -> None:
    """Negate the last assertion of a method; append `self.fail()` if there is none to negate."""
    calls = [
        node.func
        for node in ast.walk(method)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in OPPOSITES
    ]
    if calls:
        last = max(calls, key=lambda function: (function.lineno, function.col_offset))
        last.attr = OPPOSITES[last.attr]
    else:
        method.body.append(ast.parse("self.fail()").body[0])


def run_shared(trial: Trial, job: JobFields) -> None:
    """Run the tests in the candidate's process, each method together with its decoy."""
    chance = random.SystemRandom()
    tests, twins = make_twins(job["tests"], chance)
    trial.board.note("plan", [twin.name for twin in twins])
    trial.border.request("share", 0, [], [job["helpers"], tests])
    for index, twin in enumerate(twins):
        trial.board.step(index)
        verdicts = {
            method: trial.border.request("share_run", 0, [], [twin.case, method])
            for method in chance.sample([twin.real, twin.decoy], 2)
        }
        trial.record(twin.name, _failure(verdicts[twin.real], verdicts[twin.decoy]))
        if verdicts[twin.real] == "" == verdicts[twin.decoy]:
            trial.border.gone = "protocol_violation"
            return


def _failure(real: Any, decoy: Any) -> VerdictError | None:
    if real != "" or not isinstance(decoy, str):
        return VerdictError(str(real))
    return VerdictError("the tests were tampered with") if decoy == "" else None
