import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, UnknownNameError
from mlrl_envs.feedback import FEEDBACK_MODES, get_feedback
from mlrl_envs.types import Score, Task, Turn

TASK = Task("test/0")
CHECKS = [
    {"name": "function f", "passed": True, "status": "FOUND", "details": []},
    {"name": "public tests", "passed": False, "status": "1 of 2 passed", "details": ["a", "b\nc"]},
]


def _turns(*, solved=False):
    return [Turn({"main": "x"}, Score({"main": {}}, solved, {"main": {"checks": CHECKS}}))]


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("plain", ""),
        ("passed", "Not all levels passed."),
        ("level_passed", "- function f: FOUND\n- public tests: 1 of 2 passed"),
        ("diagnostics", "- function f: FOUND\n- public tests: 1 of 2 passed\n  a\n  b\n  c"),
    ],
)
def test_mode_says_what_it_should(mode, text):
    assert get_feedback(mode)(TASK, _turns(), "main") == text


def test_passed_knows_success():
    assert get_feedback("passed")(TASK, _turns(solved=True), "main") == "All levels passed."


@pytest.mark.parametrize("mode", FEEDBACK_MODES)
def test_there_is_no_feedback_before_the_first_turn(mode):
    assert get_feedback(mode)(TASK, [], "main") == ""


@pytest.mark.parametrize("mode", FEEDBACK_MODES)
def test_score_without_diagnostics_is_survived(mode):
    turns = [Turn({"main": "x"}, Score({"main": {}}, solved=False))]
    assert isinstance(get_feedback(mode)(TASK, turns, "main"), str)


def test_own_function_is_found_by_name():
    assert get_feedback("mlrl_envs.feedback.plain:feedback") is FEEDBACK_MODES["plain"]


@pytest.mark.parametrize(
    ("mode", "error", "message"),
    [
        ("diagnostic", UnknownNameError, "did you mean 'diagnostics'"),
        ("", UnknownNameError, "unknown feedback mode ''"),
        ("no.such.module:f", InvalidArgumentError, "cannot be imported"),
        ("mlrl_envs.types:nothing", InvalidArgumentError, "cannot be imported"),
        ("mlrl_envs.types:AgentID.x", InvalidArgumentError, "cannot be imported"),
        (":f", InvalidArgumentError, "cannot be imported"),
        ("mlrl_envs.testing:INFO_KEYS", InvalidArgumentError, "is not a function"),
    ],
)
def test_unknown_mode_is_refused_in_one_line(mode, error, message):
    with pytest.raises(error, match=message) as caught:
        get_feedback(mode)
    assert "\n" not in str(caught.value)


def shout(task, turns, agent):
    """Feedback of a user's own."""
    return f"{agent.upper()} TURN {len(turns)}"


def test_own_feedback_reaches_the_agents():
    env = mlrl_envs.make("mlrl/story-v1", max_turns=2, feedback=f"{__name__}:shout")
    env.reset(seed=0)
    observations, *_ = env.step({"setup": "", "story": ""})
    assert "SETUP TURN 1" in observations["setup"]
    assert "STORY TURN 1" in observations["story"]
