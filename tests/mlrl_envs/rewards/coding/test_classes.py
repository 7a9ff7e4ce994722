"""Tables of hand-computed scores; the sandbox is a script of how many tests pass."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.coding.classes import score_grounded, score_paper
from mlrl_envs.sandbox import Outcome, TestRecord
from mlrl_envs.tasks import ClassTask, Method
from mlrl_envs.types import Attempt, Turn

SKELETON = "class A:\n" + "".join(f"    def {name}(self, x): pass\n" for name in "abcd")
TASK = ClassTask(
    task_id="t",
    skeleton=SKELETON,
    class_name="A",
    methods=tuple(Method(name, 10, 2, "real", "") for name in "abcd"),
    public_tests=("a",),
    tests="import unittest\nclass T(unittest.TestCase): pass",
    num_hidden_tests=10,
)
OWNERS = {"coder_1": ("a", "b"), "coder_2": ("c", "d")}


def _code(names, body="return x"):
    return "```python\n" + "\n".join(f"def {name}(self, x): {body}" for name in names) + "\n```"


class ScriptedSandbox:
    """Lets so many hidden tests pass: of programs with a `return x`, and of the bare skeleton."""

    def __init__(self, passed, untouched=0, loads=True):
        self.passed, self.untouched, self.loads = passed, untouched, loads
        self.sources = []

    def run_many(self, programs):
        return [self._run(program) for program in programs]

    def _run(self, program):
        self.sources.append(program.source)
        if not self.loads:
            return Outcome("load_error", 0, 1, error="NameError: x")
        passed = self.passed if "return x" in program.source else self.untouched
        hidden = [TestRecord(f"T.{n}", n < passed, "" if n < passed else "no") for n in range(10)]
        return Outcome("failed", passed, 11, (TestRecord("P.a", True), *hidden))


def _attempt(first, second, turns=()):
    return Attempt(TASK, turns, {"coder_1": first, "coder_2": second})


def _play(score, first, second, sandbox):
    (result,) = score([_attempt(first, second)], [OWNERS], sandbox)
    assert result.components["coder_1"] == result.components["coder_2"]
    return result


# First and second coder's methods, tests that pass, tests that the skeleton passes; then the three
# components, with g = (k - k0) / (10 - k0): 0.9 g, 0.1 g * delivered / 4, 0.5 * strays / 4.
GROUNDED = [
    ("ab", "cd", 10, 0, (0.9, 0.1, 0.0)),
    ("ab", "cd", 10, 5, (0.9, 0.1, 0.0)),
    ("ab", "cd", 5, 0, (0.45, 0.05, 0.0)),
    ("ab", "cd", 6, 2, (0.45, 0.05, 0.0)),
    ("ab", "cd", 2, 2, (0.0, 0.0, 0.0)),
    ("ab", "cd", 1, 2, (0.0, 0.0, 0.0)),
    ("ab", "cd", 0, 0, (0.0, 0.0, 0.0)),
    ("ab", "", 5, 0, (0.45, 0.025, 0.0)),
    ("a", "", 1, 0, (0.09, 0.0025, 0.0)),
    ("", "", 0, 3, (0.0, 0.0, 0.0)),
    ("abcd", "cd", 10, 0, (0.9, 0.1, -0.25)),
    ("abcd", "abcd", 10, 0, (0.9, 0.1, -0.5)),
    ("abcd", "", 5, 0, (0.45, 0.025, -0.25)),
    ("cd", "ab", 0, 0, (0.0, 0.0, 0.0)),
    ("acd", "ab", 1, 0, (0.09, 0.0025, -0.0925)),
]


@pytest.mark.parametrize(("first", "second", "passed", "free", "parts"), GROUNDED)
def test_grounded_formula(first, second, passed, free, parts):
    sandbox = ScriptedSandbox(passed, free)
    score = _play(score_grounded, _code(first), _code(second), sandbox)
    expected = dict(zip(("tests", "delivered", "overlap"), parts, strict=True))
    assert score.components["coder_1"] == pytest.approx(expected, abs=1e-12)
    assert score.reward("coder_2") == pytest.approx(math.fsum(parts), abs=1e-12)


# 2 * parsed / 4, 4 * k / 10, methods written by more than one / 4.
PAPER = [
    ("ab", "cd", 10, (2.0, 4.0, 0.0)),
    ("ab", "cd", 5, (2.0, 2.0, 0.0)),
    ("ab", "", 5, (1.0, 2.0, 0.0)),
    ("abcd", "cd", 10, (2.0, 4.0, -0.5)),
    ("abcd", "abcd", 10, (2.0, 4.0, -1.0)),
    ("abcd", "", 5, (1.0, 2.0, 0.0)),
    ("abc", "c", 0, (1.5, 0.0, -0.25)),
    ("", "", 0, (0.0, 0.0, 0.0)),
    ("cd", "ab", 0, (0.0, 0.0, 0.0)),
]


@pytest.mark.parametrize(("first", "second", "passed", "parts"), PAPER)
def test_published_formula(first, second, passed, parts):
    score = _play(score_paper, _code(first), _code(second), ScriptedSandbox(passed, 3))
    expected = dict(zip(("parsed", "tests", "overlap"), parts, strict=True))
    assert score.components["coder_1"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("score", [score_grounded, score_paper])
def test_program_that_does_not_load_scores_nothing(score):
    result = _play(score, _code("ab"), _code("abcd"), ScriptedSandbox(10, loads=False))
    assert set(result.components["coder_1"].values()) == {0.0}
    checks = result.diagnostics["coder_1"]["checks"]
    assert {"name": "program", "passed": False, "status": "does not load",
            "details": ["NameError: x"]} in checks  # fmt: skip


STUBS = ("pass", "...", "return None", "'text'", "return True", "raise ValueError", "y = 1")


@pytest.mark.parametrize("body", STUBS)
def test_stub_earns_nothing_and_is_not_run(body):
    sandbox = ScriptedSandbox(10, 3)
    score = _play(score_grounded, _code("ab", body), _code("cd", body), sandbox)
    assert score.reward("coder_1") == 0.0
    assert sandbox.sources == []


def test_methods_that_a_teammate_sets_are_not_delivered():
    """Of four methods, coder_1 delivers two and sets one of coder_2."""
    first = _code("a") + "\n" + _code("b", "type(self).c = type(self).a; return x")
    score = _play(score_grounded, first, _code("cd"), ScriptedSandbox(10))
    assert score.components["coder_1"] == pytest.approx(
        {"tests": 0.9 * 0.85, "delivered": 0.1 * 0.85 * 0.75, "overlap": 0.0}
    )
    assert not score.solved
    checks = {c["name"]: c for c in score.diagnostics["coder_2"]["checks"]}
    assert checks["method c"]["details"] == [
        "a teammate sets this attribute at run time, so it is not used."
    ]
    checks = {c["name"]: c for c in score.diagnostics["coder_1"]["checks"]}
    assert checks["methods of teammates"]["details"] == [
        "c: set at run time, so they do not count."
    ]


def test_stub_parses_by_the_published_formula():
    score = _play(score_paper, _code("ab", "pass"), _code("cd", "pass"), ScriptedSandbox(10, 3))
    assert score.components["coder_1"] == pytest.approx(
        {"parsed": 2.0, "tests": 1.2, "overlap": 0.0}
    )


@pytest.mark.parametrize("score", [score_grounded, score_paper])
def test_solved_asks_for_every_test_and_every_method(score):
    assert _play(score, _code("ab"), _code("cd"), ScriptedSandbox(10)).solved
    assert not _play(score, _code("ab"), _code("cd"), ScriptedSandbox(9)).solved
    assert not _play(score, _code("ab"), _code("c"), ScriptedSandbox(10)).solved


def test_three_strangers_push_no_published_score_below_its_range():
    owners = {"coder_1": ("a", "b", "c", "d"), "coder_2": (), "coder_3": ()}
    actions = {"coder_1": _code("a"), "coder_2": _code("bcd"), "coder_3": _code("bcd")}
    (score,) = score_paper([Attempt(TASK, (), actions)], [owners], ScriptedSandbox(0))
    assert score.reward("coder_1") == 0.0


def test_untouched_skeleton_is_run_once_for_a_batch():
    sandbox = ScriptedSandbox(5, 2)
    score_grounded([_attempt(_code("ab"), _code("cd"))] * 3, [OWNERS] * 3, sandbox)
    assert len(sandbox.sources) == 4


def test_later_turns_earn_their_gain_only():
    (half,) = score_grounded([_attempt(_code("ab"), "")], [OWNERS], ScriptedSandbox(5))
    turn = Turn({"coder_1": _code("ab"), "coder_2": ""}, half)
    (whole,) = score_grounded(
        [_attempt(_code("ab"), _code("cd"), (turn,))], [OWNERS], ScriptedSandbox(10)
    )
    assert half.reward("coder_1") + whole.reward("coder_1") == pytest.approx(1.0)


@given(
    st.sets(st.sampled_from("abcd")),
    st.sets(st.sampled_from("abcd")),
    st.integers(0, 10),
    st.integers(0, 10),
)
def test_rewards_stay_in_range(first, second, passed, free):
    attempt = _attempt(_code(first), _code(second))
    (grounded,) = score_grounded([attempt], [OWNERS], ScriptedSandbox(passed, free))
    (paper,) = score_paper([attempt], [OWNERS], ScriptedSandbox(passed, free))
    assert 0.0 <= grounded.reward("coder_1") <= 1.0
    assert 0.0 <= paper.reward("coder_1") <= 6.0
