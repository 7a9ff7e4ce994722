import pytest

from mlrl_envs.programs.literal_tests import literal_tests, novel_tests
from mlrl_envs.testing import JUNK_TEXTS


@pytest.mark.parametrize(
    "line",
    [
        "assert f(1, [2, 'x']) == {'a': (1, 2)}",
        "assert f(-1) == -2.5",
        "assert f(x=1)",
        "assert not f(None)",
        "assert f() is None",
        "assert f(True) is False",
    ],
)
def test_assertions_on_literals_are_accepted(line):
    assert literal_tests(line, "f", 5) == (line,)
    for form in ("```python\n{}\n```", "{}\n```", "\ufeff{}", " ```\n {}\n ```"):
        assert literal_tests(form.replace("{}", line), "f", 5) == (line,)


def test_escapes_that_become_a_long_run_of_marks_are_literals():
    line = "assert f('" + "\\u0301\\u0327" * 40 + "') == 1"
    (test,) = literal_tests(line, "f", 5)
    assert novel_tests((test,), (), "def f(x): pass", "f") == (test,)


@pytest.mark.parametrize(
    "line",
    [
        "assert f(open('/etc/passwd').read()) == 1",
        "assert f(1) == g(2)",
        "assert f(1) == __import__('os').system('id')",
        "assert f(*[1]) == 1",
        "assert f(**{'x': 1}) == 1",
        "assert f(10 ** 10 ** 10) == 1",
        "assert f(1).x == 1",
        "assert g(1) == 1",
        "assert f(1) is 1",
        "assert f(1) == 1 == 1",
        "assert f(1) < 2",
        "assert f(1) == f(1)",
        "assert f(lambda: 1) == 1",
        "assert f({[]: 1}) == 1",
        "assert (f := print)(1) == 1",
        "assert True",
        "f(1) == 1",
        f"assert f('{'x' * 500}') == 1",
    ],
)
def test_everything_else_is_left_out(line):
    assert literal_tests(line, "f", 5) == ()
    assert literal_tests(f"```python\n{line}\nassert f(1) == 1\n```", "f", 5) == (
        "assert f(1) == 1",
    )


def test_messages_are_dropped_and_repeated_tests_count_once():
    text = "assert f(1) == 1, boom()\nassert f(1) == 1\nassert f(2) == 2"
    assert literal_tests(text, "f", 5) == ("assert f(1) == 1", "assert f(2) == 2")
    assert literal_tests(text, "f", 1) == ("assert f(1) == 1",)


def test_lines_count_where_the_text_does_not_parse():
    text = "Here are tests:\nassert f(1) == 1\nand so on"
    assert literal_tests(text, "f", 5) == ("assert f(1) == 1",)


def test_assertions_inside_functions_count():
    text = "```python\ndef test_f():\n    assert f(1) == 1\n```"
    assert literal_tests(text, "f", 5) == ("assert f(1) == 1",)


@pytest.mark.parametrize("text", JUNK_TEXTS)
def test_any_text_is_read(text):
    assert isinstance(literal_tests(text, "f", 5), tuple)


SOLUTION = "def f(first, second=0, *rest, **others):\n    return first"


@pytest.mark.parametrize(
    "test",
    [
        "assert f(1, 2) == 5",
        "assert f(1.0, second=2) == 3",
        "assert f(second=2, first=True) == 3",
        "assert not f(1, 2)",
        "assert f(1, 2) is None",
    ],
)
def test_a_test_with_the_arguments_of_a_shown_one_is_not_novel(test):
    shown = ["assert f(7) == 1", "assert abs(f(1, 2) - 3) < 1e-6"]
    assert literal_tests(test, "f", 5) == (test,)
    assert novel_tests([test], shown, SOLUTION, "f") == ()


@pytest.mark.parametrize(
    "test", ["assert f(1, 3) == 3", "assert f(1) == 3", "assert f(1, 2, 4) == 3", "assert f(x=1)"]
)
def test_a_test_with_other_arguments_is_novel(test):
    assert novel_tests([test], ["assert f(1, 2) == 3"], SOLUTION, "f") == (test,)


@pytest.mark.parametrize("value", ["(2, 1, (3,))", "{2: 0, 1: 0, (3,): 0}", "{1, 2, (3,)}"])
def test_the_arguments_of_a_shown_test_in_other_containers_are_not_novel(value):
    tests = [f"assert f({value}) == 3", "assert f((2, 1, (4,))) == 3"]
    assert novel_tests(tests, ["assert f([2, 1, [3]]) == 3"], SOLUTION, "f") == (tests[1],)


@pytest.mark.parametrize("value", ["['a', 'b']", "{'a': 1, 'b': 1}", "('a', 'b')", "'ab'"])
def test_the_characters_of_a_shown_text_are_not_novel(value):
    tests = [f"assert f({value}) == 3", "assert f('ba') == 3", "assert f('abc') == 3"]
    assert novel_tests(tests, ["assert f('ab') == 3"], SOLUTION, "f") == tuple(tests[1:])


def test_without_a_definition_arguments_are_compared_by_place():
    tests = ["assert f(1, 2) == 3", "assert f(2, 1) == 3"]
    assert novel_tests(tests, ["assert f(1, 2) == 3"], "g = 1 +", "f") == (tests[1],)


def test_arguments_that_cannot_be_hashed_are_compared():
    tests = ["assert f([1], {'a': {2}}) == 3", "assert f([1], {'a': {3}}) == 3"]
    assert novel_tests(tests, tests[:1], SOLUTION, "f") == (tests[1],)
