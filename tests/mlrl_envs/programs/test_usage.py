import pytest

from mlrl_envs.programs.assembly import read_answer
from mlrl_envs.programs.usage import usage_of


def _usage(body):
    return usage_of(read_answer(f"def f(x, y=0):\n    {body}", "f"), "aux")


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        ("return aux(x)", "wrapped"),
        ("'''Doc.'''\n    return aux(x, y)", "wrapped"),
        ("import math\n    pass\n    return aux(x)", "wrapped"),
        ("z = aux(x)\n    return z", "wrapped"),
        ("z: int = aux(x)\n    return z", "wrapped"),
        ("return aux(x) + 1", "used"),
        ("z = aux(x)\n    return z + 1", "used"),
        ("z = aux(x)\n    z = z + 1\n    return z", "used"),
        ("if aux(x):\n        return 1\n    return 2", "used"),
        ("return [aux(i) for i in x]", "used"),
        ("return sorted(x, key=lambda i: aux(i))", "used"),
        ("aux(x)\n    return 1", "ignored"),
        ("z = aux(x)\n    return 1", "ignored"),
        ("aux(x)\n    z = aux(x)\n    return 1", "ignored"),
        ("aux(x)\n    return aux(x) + 1", "used"),
        ("return 1", "uncalled"),
        ("return 'aux(x)'", "uncalled"),
        ("# aux(x)\n    return 1", "uncalled"),
        ("return x.aux(1)", "uncalled"),
        ("return aux", "uncalled"),
        ("aux = lambda z: z\n    return aux(x) + 1", "uncalled"),
        ("def aux(z):\n        return z\n    return aux(x) + 1", "uncalled"),
        ("from m import aux\n    return aux(x) + 1", "uncalled"),
        ("return (lambda aux: aux(x) + 1)(len)", "uncalled"),
    ],
)
def test_usage_is_read_from_the_tree(body, usage):
    assert _usage(body) == usage


def test_parameter_named_aux_hides_it():
    assert usage_of(read_answer("def f(aux):\n    return aux(1) + 1", "f"), "aux") == "uncalled"


def test_calls_in_helpers_of_main_count():
    code = "def g(x):\n    return aux(x) + 1\n\ndef f(x):\n    return g(x) * 2"
    assert usage_of(read_answer(code, "f"), "aux") == "used"


def test_missing_main_uses_nothing():
    assert usage_of(read_answer("no code", "f"), "aux") == "missing"
