import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.programs.assembly import assemble, read_answer, replace_function
from mlrl_envs.tasks import CodeTask

TASK = CodeTask(
    task_id="test/0",
    prompt="",
    entry_point="solve",
    prelude="import math\n\ndef given(x):\n    return x + 1",
    helper_names=("given",),
    public_tests=(),
    hidden_tests="def check(candidate):\n    assert candidate(1) == 4",
    num_hidden_tests=1,
)
FUNCTIONS = {"aux": "aux", "main": "solve"}
AUX = "def aux(x):\n    return x * 2"
MAIN = "def solve(x):\n    return aux(given(x))"


def _assemble(aux, main):
    return assemble(TASK, FUNCTIONS, {"aux": aux, "main": main})


def _value(program, call="solve(1)"):
    scope = {}
    exec(program.source, scope)
    return eval(call, scope)


def test_program_is_prelude_helper_main():
    program = _assemble(AUX, MAIN)
    assert _value(program) == 4
    assert [program.source.index(name) for name in ("def given", "def aux", "def solve")] == sorted(
        program.source.index(name) for name in ("def given", "def aux", "def solve")
    )


def test_helpers_imports_and_constants_come_along():
    main = (
        "import itertools\nLIMIT = 3\nseen: dict = {}\n\nclass Box:\n    pass\n\n"
        "def twice(x):\n    return 2 * x\n\ndef solve(x):\n    return twice(LIMIT)"
    )
    assert _value(_assemble(AUX, main)) == 6


@pytest.mark.parametrize(
    "extra",
    [
        "print(solve(1))",
        "assert solve(1) == 3",
        "if __name__ == '__main__':\n    solve(1)",
        "solve(1)",
        "raise SystemExit",
        "while True: pass",
        "del solve",
        "for i in range(3): solve(i)",
        "x.y = 1",
        "given.__code__ = solve.__code__",
        "a[0] = 1",
    ],
)
def test_statements_that_run_are_left_out(extra):
    assert _value(_assemble(AUX, f"{MAIN}\n{extra}\n")) == 4


@pytest.mark.parametrize(
    "rebinding",
    [
        "def aux(x):\n    return 100",
        "aux = lambda x: 100",
        "from math import sqrt as aux",
        "class aux:\n    pass",
        "aux: int = 3",
        "aux, y = 1, 2",
    ],
)
def test_main_cannot_redefine_aux(rebinding):
    program = _assemble(AUX, f"{rebinding}\n\n{MAIN}")
    assert _value(program) == 4
    assert program.answers["main"].dropped == ("aux",)


def test_aux_cannot_write_the_entry_point():
    program = _assemble(f"{AUX}\n\ndef solve(x):\n    return 4", "no code")
    assert program.source is None
    assert program.answers["aux"].dropped == ("solve",)


def test_nobody_redefines_the_problems_helpers():
    program = _assemble(f"{AUX}\n\ndef given(x):\n    return 0", f"def given(x): return 0\n{MAIN}")
    assert _value(program) == 4


def test_assignments_that_read_input_and_what_needs_them_are_left_out():
    use = "n = int(input())\nwhole, part = solve(n), 2\nread = lambda: input()\nn = 4\nmore = n + 1"
    program = _assemble(AUX, f"{MAIN}\n{use}")
    assert "whole" not in program.source
    assert _value(program, "solve(1), more, callable(read)") == (4, 5, True)
    redefined = _assemble(AUX, f"input = lambda: '7'\nn = input()\n{MAIN}")
    assert _value(redefined, "n") == "7"


def test_future_imports_come_first():
    program = _assemble(AUX, f"from __future__ import annotations\n{MAIN}")
    assert _value(program) == 4


def test_missing_aux_leaves_a_program():
    program = _assemble("nothing", "def solve(x):\n    return 4")
    assert program.answers["aux"].function is None
    assert _value(program) == 4


@pytest.mark.parametrize("main", ["", "    return 4", "solve", "x = 4", "def other(): pass"])
def test_missing_entry_point_leaves_none(main):
    assert _assemble(AUX, main).source is None


def test_syntax_error_is_kept_with_its_place():
    answer = read_answer("```python\ndef solve(x):\n    return (x\n```", "solve")
    assert answer.function is None
    assert "line 2" in answer.error


@given(st.text(st.characters(exclude_categories=())), st.text())
def test_any_answers_are_survived(aux, main):
    program = _assemble(aux, main)
    assert program.source is None or ast.parse(program.source)


def test_function_is_replaced_and_may_be_kept():
    program = _assemble(AUX, MAIN).source
    stub = replace_function(program, "aux", "def aux(x):\n    return 0")
    kept = replace_function(program, "aux", "def aux(x):\n    return -old(x)", keep_as="old")
    for source, value in ((stub, 0), (kept, -4)):
        scope = {}
        exec(source, scope)
        assert scope["solve"](1) == value


def test_decorators_go_with_the_function_that_is_replaced():
    source = "def deco(f):\n    return lambda x: 100\n\n@deco\ndef aux(x):\n    return 1"
    scope = {}
    exec(replace_function(source, "aux", "def aux(x):\n    return 0"), scope)
    assert scope["aux"](1) == 0
