"""Both formulas on tables of hand-computed values. The sandbox is a fake: it plays no cell."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.tools.checks import ToolRules
from mlrl_envs.rewards.tools.score import score_grounded, score_paper
from mlrl_envs.sandbox import Reply
from mlrl_envs.tasks import Document, ToolEvidence, ToolTask
from mlrl_envs.types import Attempt, Turn

TASK = ToolTask(
    task_id="t",
    question="How much?",
    briefs=(("researcher", "It is item K9."), ("solver", "One weighs 2.5 kg.")),
    evidence=(
        ToolEvidence("researcher", "search", '{"query": "item K9"}', (), "k9"),
        ToolEvidence("solver", "calculator", '{"expression": "30 * 2.5"}', ("30", "2.5"), "75"),
    ),
    answer="75",
)
DOCUMENTS = (Document("k9", "Item K9", "There are 30 of item K9."), Document("z", "Else", "No."))
RULES = ToolRules(DOCUMENTS, "solver", max_calls=3, max_turns=4, seconds=1.0)


class Echo:
    """A sandbox whose files hold "text"; cells show nothing."""

    def play_many(self, scripts):
        return [[Reply("ok", "text") for _ in script.calls] for script in scripts]


def call(name, **parameters):
    return f"<tool_call>{json.dumps({'name': name, 'parameters': parameters})}</tool_call>"


SEARCH = call("search", query="item K9")
SUM = call("calculator", expression="30 * 2.5")
OTHER = call("read_file", path="x")
UNKNOWN = call("oracle")
BAD = "<tool_call>?</tool_call>"
RIGHT, WRONG = "<answer>75</answer>", "<answer>74</answer>"


def play(score, *joint_actions, task=TASK):
    """Return the scores of an episode."""
    turns = []
    for researcher, solver in joint_actions:
        actions = {"researcher": researcher, "solver": solver}
        (verdict,) = score([Attempt(task, tuple(turns), actions)], RULES, Echo())
        turns.append(Turn(actions, verdict))
    return [turn.score for turn in turns]


@pytest.mark.parametrize(
    ("researcher", "solver", "reward"),
    [
        ("", "", -0.2),
        ("I think", "75", -0.2),
        (SEARCH, "", 0.3),  # the solver has nothing to do yet
        (SEARCH, "I wait.", 0.3 - 0.1),
        (SEARCH, " \n", 0.3),
        (BAD, "", -0.2),
        (UNKNOWN, "", -0.3),
        (SEARCH, SUM, 0.6),
        (OTHER, UNKNOWN, -0.3),
        (BAD, BAD, -0.2),
        (SEARCH + SEARCH + SEARCH, SUM * 3, 1.8),
        (SEARCH * 5, SUM, 1.2),  # two of five are not made
        (SEARCH, SUM + RIGHT, 0.6 + 0.5 + 0.3 + 0.2 * 0.75),
        (SEARCH, RIGHT, 0.3 + 0.5 + 0.15 + 0.2 * 0.75),
        (SEARCH, WRONG, 0.3 + 0.15),
        ("", RIGHT, 0.5 + 0.2 * 0.75),
        ("I think", RIGHT, -0.1 + 0.5 + 0.2 * 0.75),
        (RIGHT, "", -0.1),  # the researcher's answer does not count
        (call("search", text="x"), SUM, 0.3 - 0.1),
    ],
)
def test_paper_first_turn(researcher, solver, reward):
    (score,) = play(score_paper, (researcher, solver))
    for agent in ("researcher", "solver"):
        assert score.reward(agent) == pytest.approx(reward, abs=1e-9)


@pytest.mark.parametrize("solver", ["", RIGHT, SUM])
def test_paper_components_are_floats(solver):
    (score,) = play(score_paper, ("", solver))
    assert all(type(value) is float for value in score.components["solver"].values())


def test_paper_counts_turns_from_one_and_tools_of_the_whole_episode():
    scores = play(score_paper, (SEARCH, SUM), ("", WRONG), ("", RIGHT))
    assert [round(score.reward("solver"), 9) for score in scores] == [
        0.6,
        0.3,
        round(0.5 + 0.3 + 0.2 * 0.25, 9),
    ]


@pytest.mark.parametrize(
    ("researcher", "solver", "reward"),
    [
        ("", "", 0.0),
        (SEARCH, "", 0.1),
        (SEARCH, SUM, 0.2),
        (SEARCH, SUM + RIGHT, 1.0),
        ("", RIGHT, 0.2),
        (SEARCH, RIGHT, 0.2 + 0.3 + 0.1),
        (SEARCH, SUM + WRONG, 0.2),
        (SEARCH, SUM + RIGHT + WRONG, 0.2),
        (SEARCH + OTHER, SUM + RIGHT, 0.98),
        (SEARCH + BAD, SUM + RIGHT, 0.95),
        (SEARCH + UNKNOWN, SUM + RIGHT, 0.95),
        (SEARCH + SEARCH, SUM + RIGHT, 0.98),
        (SEARCH * 3, SUM * 3 + RIGHT, 0.92),
        (SEARCH + BAD * 31, SUM + RIGHT, 0.4),  # economy has a floor
        (SEARCH, call("calculator", expression="70 + 5") + RIGHT, 0.6 * 0.98),
        (SEARCH, call("calculator", expression="30 + 45") + RIGHT, 0.6 * 0.98),
        (SEARCH + SUM, RIGHT, 1.0),  # who makes a call does not matter
    ],
)
def test_grounded_first_turn(researcher, solver, reward):
    (score,) = play(score_grounded, (researcher, solver))
    for agent in ("researcher", "solver"):
        assert score.reward(agent) == pytest.approx(reward, abs=1e-9)


def total(*joint_actions):
    return sum(score.reward("solver") for score in play(score_grounded, *joint_actions))


def test_grounded_episode_is_worth_its_best_turn():
    assert total((SEARCH, SUM + RIGHT)) == pytest.approx(1.0)
    assert total((SEARCH, ""), ("", SUM), ("", RIGHT)) == pytest.approx(1.0)
    assert total((SEARCH, ""), (SEARCH, ""), (SEARCH, "")) == pytest.approx(0.1)


def test_a_wrong_answer_leaves_a_quarter_of_what_a_right_one_is_worth():
    assert total((SEARCH, SUM + WRONG), ("", RIGHT)) == pytest.approx(0.8 * 0.25 + 0.2)
    assert total(("", WRONG), ("", WRONG), ("", RIGHT)) == pytest.approx(0.2 * 0.0625)
    both = "<answer>1</answer><answer>75</answer>"
    assert total((SEARCH, SUM + both), ("", RIGHT)) == pytest.approx(0.8 * 0.25 + 0.2)


def calculations(*expressions):
    return "".join(call("calculator", expression=expression) for expression in expressions)


@pytest.mark.parametrize(
    ("solver", "shown"),
    [
        (calculations("30 * 2", "60 + 30 * 0.5"), [0]),
        (calculations("2.5 * 15", "37.5 * 30 / 15"), [0, 1]),
        (calculations("75 / 30 * 2.5", "30 * 2.5"), [0]),
        (call("write_file", path="n", content="30 * 2.5 = 75") + SUM, [0]),
        (call("write_file", path="n", content="30 at 2.5") + calculations("750 / 10"), [0, 1]),
    ],
)
def test_a_number_is_shown_if_no_call_wrote_it_and_calls_wrote_what_it_is_made_from(solver, shown):
    (score,) = play(score_grounded, (SEARCH, solver))
    assert score.diagnostics["solver"]["evidence"] == shown


def test_a_turn_is_scored_again_to_the_same_score():
    actions = {"researcher": SEARCH + OTHER, "solver": SUM + BAD}
    attempts = [Attempt(TASK, (), actions)] * 3
    assert len({repr(score) for score in score_grounded(attempts, RULES, Echo())}) == 1


class Files(Echo):
    """A sandbox whose programs show one text on the files and another on their twins."""

    def __init__(self, text, twin):
        self.texts = {"real": text, "twin": twin}

    def play_many(self, scripts):
        return [
            [Reply("ok", self.texts[script.history[0].text]) for _ in script.calls]
            for script in scripts
        ]


ROWS = replace(
    TASK,
    files=(("data.csv", "real"),),
    twin_files=(("data.csv", "twin"),),
    evidence=(ToolEvidence("solver", "python", "{}", ("30", "45"), "75", "61"),),
)


@pytest.mark.parametrize(
    ("code", "text", "twin", "held"),
    [
        ("print(sum(map(int, open('data.csv'))))", "75", "61", True),
        ("print(sum(map(int, open('data.csv'))))", "total: 75.", "total: 61.", True),
        ("print(sum(map(int, open('data.csv'))))", "30\n45\n75", "31\n30\n61", True),
        ("print(sum(map(int, open('data.csv'))))", "75", "75", False),
        ("print(sum(map(int, open('data.csv'))))", "175", "161", False),
        ("print(*range(100))", " ".join(map(str, range(100))), "61", False),
        ("print(75, open('data.csv'))", "75", "61", False),
        ("print(76 - 1)", "75", "75", False),
        ("print(30 + 45)", "75", "75", True),
        ("print(35 + 40)", "75", "75", False),
    ],
)
def test_a_program_is_evidence_by_its_numbers_or_on_twin_files(code, text, twin, held):
    actions = {"researcher": "", "solver": call("python", code=code)}
    (score,) = score_grounded([Attempt(ROWS, (), actions)], RULES, Files(text, twin))
    assert score.diagnostics["solver"]["evidence"] == [0] * held


@given(st.text(), st.text())
def test_any_text_scores_within_the_range(researcher, solver):
    (score,) = play(score_grounded, (researcher, solver))
    assert 0.0 <= score.reward("solver") <= 1.0
    (score,) = play(score_paper, (researcher, solver))
    assert -0.2 * 6 <= score.reward("solver") <= 0.3 * 6 + 1.0
