"""Programs with a replaced helper or main function, executed here."""

import pytest

from mlrl_envs.programs.replacements import PAIRS, WRAPPERS, replace

SOURCE = """
depths = []
def free():
    try:
        return 1 + free()
    except RecursionError:
        return 1
def aux(n):
    depths.append(free())
    return [n, aux(n - 1)] if n else []
def f(n):
    depths.append(free())
    return len(str(aux(n)))
"""


def _depths(source):
    names = {}
    exec(source, names)
    for n in (2, 1):
        try:
            names["f"](n)
        except RuntimeError:
            names["depths"].append("withheld")
    return names["depths"]


@pytest.mark.parametrize("name", [*WRAPPERS, *PAIRS])
def test_the_stack_is_as_deep_as_in_the_unchanged_program(name):
    changed = _depths(replace(SOURCE, "f", "aux", name))
    assert set(changed) - {"withheld"} <= set(_depths(SOURCE))
