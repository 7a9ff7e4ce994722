"""Tests that cannot be split run beside the candidate, in its own jailed process, with decoys.

Some tests hand live objects over (an XML element, an open file). Here the candidate could forge
its verdict, so the outcome says `assurance="shared"`, and every method runs twice under random
names: as it is, and as a decoy whose last assertion says the opposite. A method counts only if
it passes and its decoy does not; where both pass, somebody patched the tests.
"""

# ruff: noqa: ANN401  values of any type cross the border

import ast
import copy
import random
from dataclasses import dataclass
from typing import Any

from mlrl_envs.sandbox.judge.faults import VerdictError
from mlrl_envs.sandbox.judge.trial import Job, Trial

__all__ = ["Twin", "make_twins", "run_shared"]

PAIRS = (
    *(("Equal", "NotEqual"), ("True", "False"), ("Is", "IsNot"), ("In", "NotIn")),
    *(("IsNone", "IsNotNone"), ("Greater", "LessEqual"), ("Less", "GreaterEqual")),
    *(("AlmostEqual", "NotAlmostEqual"), ("IsInstance", "NotIsInstance")),
)
OPPOSITES = {f"assert{a}": f"assert{b}" for pair in PAIRS for a, b in (pair, pair[::-1])}


@dataclass(frozen=True)
class Twin:
    """One test method under two random names.

    Attributes:
        name: What the record is called.
        case: Its class.
        real: The method as it is.
        decoy: The method that must fail if `real` passes.
    """

    name: str
    case: str
    real: str
    decoy: str


def make_twins(tests: str, chance: random.Random) -> tuple[str, list[Twin]]:
    """Return tests in which every method is there twice, and which is which."""
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
    """Make the last assertion of a method say the opposite, or let the method fail."""
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


def run_shared(trial: Trial, job: Job) -> None:
    """Run the tests in the candidate's process, one method and its decoy at a time."""
    chance = random.SystemRandom()
    tests, twins = make_twins(job["tests"], chance)
    trial.board.note("plan", [twin.name for twin in twins])
    trial.session.request("share", 0, [], [job["helpers"], tests])
    for place, twin in enumerate(twins):
        trial.board.step(place)
        verdicts = {
            method: trial.session.request("share_run", 0, [], [twin.case, method])
            for method in chance.sample([twin.real, twin.decoy], 2)
        }
        trial.record(twin.name, _failure(verdicts[twin.real], verdicts[twin.decoy]))
        if verdicts[twin.real] == "" == verdicts[twin.decoy]:
            trial.session.gone = "protocol_violation"
            return


def _failure(real: Any, decoy: Any) -> VerdictError | None:
    if real != "" or not isinstance(decoy, str):
        return VerdictError(str(real))
    return VerdictError("the tests were tampered with") if decoy == "" else None
