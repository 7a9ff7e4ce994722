import ast

import pytest

from mlrl_envs.datasets.problems import count_assertions, definitions, prelude_of, solutions_in

PROMPT = (
    "import math\n\nclass A:\n    pass\n\ndef g(x):\n    return x\n\ndef f(x):\n    '''Do.'''\n"
)


def test_prelude_is_all_but_the_function():
    prelude = prelude_of(PROMPT, "f")
    assert [type(node) for node in prelude] == [ast.Import, ast.ClassDef, ast.FunctionDef]
    assert definitions(prelude) == ("A", "g")


@pytest.mark.parametrize(
    ("tests", "count"),
    [("assert f(1) == 2\nassert True", 1), ("for x in y:\n    assert f(x)", 1), ("x = 1", 0)],
)
def test_constant_assertions_check_nothing(tests, count):
    assert count_assertions(tests) == count


def test_a_solution_brings_along_what_it_needs():
    module = (
        "import math, re\nfrom os import path\nLIMIT = 3\n"
        "def _even(n): return n % 2 == 0\n"
        "def f(n): return _even(n) and n < LIMIT\n"
        "def g(n): return math.sqrt(f(n))\n"
        "def h(n): return h(n - 1) if n else 0\n"
    )
    solutions = solutions_in(module)
    assert set(solutions) == {"_even", "f", "g", "h"}
    assert solutions["f"].split("\n\n")[0] == "LIMIT = 3"
    assert "math" not in solutions["f"]
    assert solutions["g"].startswith("import math, re\n\nLIMIT")
    assert "path" not in solutions["g"]
    assert solutions["h"].count("def") == 1
