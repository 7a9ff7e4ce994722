import pytest

from mlrl_envs.sandbox.judge.operators import used_operators


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ("x[0]", ("__getitem__",)),
        ("x[0] = 1", ("__setitem__",)),
        ("del x[0]", ("__delitem__",)),
        ("len(x)", ("__len__",)),
        ("x.__len__()", ("__len__",)),
        ("[y for y in x]", ("__iter__",)),
        ("self.assertNotIn(1, x)", ("__contains__",)),
        ("1 in x", ("__contains__",)),
        ("len(x.items())", ()),
        ("x.items()[0]", ()),
        ("x == x", ()),
        ("len(other)", ()),
    ],
)
def test_operators_are_those_used_on_an_instance_the_tests_made(use, found):
    assert used_operators(f"x = Box(3)\n{use}", ("Box",)) == found


def test_results_of_functions_gain_no_operator():
    assert used_operators("x = box(3)\nlen(x)", ("box",)) == ()
    assert used_operators("x = Box(3).get()\nlen(x)", ("Box",)) == ()
