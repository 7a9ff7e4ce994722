import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlrl_envs.parsing.numbers import find_answer
from mlrl_envs.rewards.math.score import MathRules, score_grounded, score_paper, vote
from mlrl_envs.tasks import MathTask
from mlrl_envs.types import Attempt, Turn

TASK = MathTask(
    "t", "Ann has 48 clips and gets half as many again. How many?", "72", "48 + 24 = 72"
)
RIGHT, WRONG, WORKED = "Answer: 72", "Answer: 70", "48 / 2 = 24, 48 + 24 = 72\nAnswer: 72"
ANY_TEXT = st.text(st.characters(exclude_categories=()))
PAIR = ("solver", "verifier")


def _play(score, turns, rules=MathRules(), agents=PAIR):  # noqa: B008  frozen
    """Play joint actions; return the score of each turn."""
    played: list[Turn] = []
    for texts in turns:
        actions = dict(zip(agents, texts, strict=True))
        played.append(Turn(actions, score(Attempt(TASK, tuple(played), actions), rules)))
    return [turn.score for turn in played]


def _rewards(turns, **rules):
    rules = MathRules(**rules)
    agents = [f"solver_{n}" for n in range(len(turns[0]))] if rules.votes else PAIR
    return [s.reward(agents[0]) for s in _play(score_grounded, turns, rules, agents)]


@pytest.mark.parametrize(
    ("texts", "steps", "reward"),
    [
        ((RIGHT, RIGHT), False, 1.0),
        ((WORKED, WORKED), False, 1.0),
        ((WORKED, WORKED), True, 1.2),
        ((RIGHT, RIGHT), True, 1.0),
        ((WRONG, WRONG), False, 0.0),
        (("2 + 2 = 4\nAnswer: 4", WRONG), True, 0.1),
        (("", ""), False, -0.3),
        (("no idea", "no idea"), True, -0.3),
        (("First nothing.", "then nothing."), True, -0.1),
        ((RIGHT, ""), False, 0.35),
        ((WRONG, ""), False, -0.15),
        ((WORKED, RIGHT), True, 1.1),
    ],
)
def test_paper_formula(texts, steps, reward):
    (score,) = _play(score_paper, [texts], MathRules(require_steps=steps))
    assert score.reward("solver") == pytest.approx(reward, abs=1e-9)
    assert score.reward("solver") == score.reward("verifier")


@pytest.mark.parametrize(
    ("texts", "reward"),
    [
        ((RIGHT, RIGHT, WRONG), 1.0),
        ((RIGHT, WRONG, WRONG), 0.0),
        ((RIGHT, WRONG, ""), 0.9),
        (("", "", RIGHT), 0.8),
        (("", "", ""), -0.3),
    ],
)
def test_paper_formula_of_a_vote(texts, reward):
    (score,) = _play(score_paper, [texts], MathRules(votes=True), ["a", "b", "c"])
    assert score.reward("a") == pytest.approx(reward, abs=1e-9)


@pytest.mark.parametrize(
    ("texts", "reward", "solved"),
    [
        ((RIGHT, RIGHT), 1.0, True),
        ((RIGHT, WRONG), 0.6, False),
        ((WRONG, RIGHT), 0.4, False),
        ((WRONG, WRONG), 0.0, False),
        (("", RIGHT), 0.4, False),
    ],
)
def test_grounded_pair(texts, reward, solved):
    (score,) = _play(score_grounded, [texts])
    assert score.reward("verifier") == pytest.approx(reward)
    assert score.solved is solved


@pytest.mark.parametrize(
    ("texts", "reward", "solved"),
    [
        ((RIGHT, RIGHT, RIGHT), 1.0, True),
        ((RIGHT, RIGHT, WRONG), 0.6 + 0.4 * 2 / 3, True),
        ((RIGHT, WRONG, "Answer: 3"), 0.6 + 0.4 / 3, True),
        ((WRONG, RIGHT, "Answer: 3"), 0.4 / 3, False),
        ((WRONG, WRONG, RIGHT), 0.4 / 3, False),
        (("", "", ""), 0.0, False),
    ],
)
def test_grounded_vote(texts, reward, solved):
    (score,) = _play(score_grounded, [texts], MathRules(votes=True), ["a", "b", "c"])
    assert score.reward("c") == pytest.approx(reward)
    assert score.solved is solved


ALGEBRA = MathTask("a", "Solve for x: 3x + 5 = 77", "24", "77 - 5 = 72\n72 / 3 = 24")


def first_reward(text, task=ALGEBRA):
    attempt = Attempt(task, (), {"solver": text, "verifier": text})
    return score_grounded(attempt, MathRules()).reward("solver")


@pytest.mark.parametrize(
    "text",
    [
        "x = 24",
        "x = 24\n\nCheck: 3 * 24 + 5 = 77",
        "x = 24\n3 * 24 + 5 = 77 \u2713",
        "x = 24\nSubstituting back, 3 * 24 + 5 = 77, as required.",
        "3x = 72\nx = 24\nPlugging in: 3(24) + 5 = 77",
        "24.\n\n(3*24+5 = 77)",
        "x = 24. To verify, 3 * 24 + 5 = 77.",
        "The first 5 go away, 3 times the rest: 24 each of 3.",
        "\\[x = \\frac{72}{3} = 24\\]",
    ],
)
def test_an_unmarked_answer_counts_beside_numbers_of_the_question(text):
    assert first_reward(text) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "text",
    [
        *("x = 1, x = 24", "x = 24, x = 1", "x = 1; x = 24", "x = 1 or x = 24"),
        *("24, 25, 26", "23 and 24", "23 24 25", "24 (or 25)", "from 24 to 25"),
        "23, 24\nso 77",
        "Answer: 21\nAnswer: 22\nAnswer: 23\nAnswer: 24",
        "Answer: 24, 25",
        "77",
        "Solve for x: 3x + 5 = 77",
    ],
)
def test_a_list_of_candidates_is_no_answer(text):
    assert first_reward(text) == pytest.approx(0.0)


def test_a_number_of_the_question_may_be_the_answer():
    task = MathTask("q", "Ann has 7 of the 12 eggs, Ben 5. How many does Ann have?", "7", "")
    assert first_reward("12 - 5 = 7", task) == pytest.approx(1.0)
    assert first_reward(task.question + " 7", task) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("numbers", "winner"),
    [([5, 6, 6], 6), ([5, 6], 5), ([6, 5], 6), ([None, 5, 6], 5), ([1, 2, 3, 3, 2], 2), ([], None)],
)
def test_vote_goes_to_most_and_then_to_the_first(numbers, winner):
    found = vote([None if n is None else find_answer(f"Answer: {n}") for n in numbers])
    assert (found and found.value) == winner


def test_equal_numbers_written_differently_are_one_vote():
    answers = [find_answer(text) for text in ("Answer: 1/2", "Answer: 5", "Answer: 0.50")]
    assert vote(answers) == answers[0]


def test_steps_are_paid_only_where_they_lead_to_a_right_number():
    paid = [
        _rewards([(text, text)], require_steps=True)[0]
        for text in (WORKED, RIGHT, "72 + 0 = 72. Answer: 72", "48 + 24 = 72\nAnswer: 71")
    ]
    assert paid == pytest.approx([1.0, 0.4, 0.4, 0.0])


def test_second_number_of_an_agent_is_worth_half():
    assert _rewards([(WRONG, WRONG), (RIGHT, RIGHT)]) == pytest.approx([0.0, 0.5])


def test_third_number_is_worth_a_third_and_repeats_do_not_count():
    turns = [(WRONG, RIGHT), (WRONG, RIGHT), ("Answer: 5", RIGHT), (RIGHT, RIGHT)]
    assert _rewards(turns) == pytest.approx([0.4, 0.0, 0.0, 0.6 / 3])


def test_late_first_number_is_worth_a_whole():
    assert _rewards([("", RIGHT), (RIGHT, RIGHT)]) == pytest.approx([0.4, 0.6])


@pytest.mark.parametrize(
    ("text", "is_shared", "gain"),
    [
        (RIGHT, True, 0.0),
        (WORKED, True, 0.0),  # the very words of the teammate
        ("Half of 48 is 48 / 2 = 24, in all 48 + 24 = 72 clips.\nAnswer: 72", True, 0.4 * 0.5),
        ("72 + 0 = 72\nAnswer: 72", True, 0.0),
        (RIGHT, False, 0.4),
    ],
)
def test_number_a_teammate_showed_pays_only_with_own_working(text, is_shared, gain):
    turns = [(WORKED, ""), (WORKED, text)]
    assert _rewards(turns, is_shared=is_shared)[1] == pytest.approx(gain)


def test_own_number_stays_own_though_the_teammate_has_it_too():
    turns = [(RIGHT, RIGHT, WRONG), (RIGHT, RIGHT, WRONG)]
    (_, second) = _play(
        score_grounded, turns, MathRules(votes=True, is_shared=True), ["a", "b", "c"]
    )
    assert second.reward("a") == 0.0
    assert second.components["a"]["vote"] == 0.6


def _checks(texts, rules=MathRules(), agents=PAIR):  # noqa: B008  frozen
    (score,) = _play(score_grounded, [texts], rules, agents)
    return [(c["name"], c["status"], c["details"]) for c in score.diagnostics[agents[0]]["checks"]]


def test_feedback_tells_right_or_wrong_and_own_slips():
    assert _checks(("48 + 24 = 70\nAnswer: 70", RIGHT)) == [
        ("your answer", "FOUND", []),
        ("your result", "wrong", ["this step does not add up: 48 + 24 = 70"]),
        ("solver and verifier", "differ", []),
    ]


def test_feedback_names_a_missing_answer():
    form, result, _ = _checks(("dunno", RIGHT))
    assert form[1] == "MISSING"
    assert result[1] == "none"


def test_feedback_of_a_vote():
    rules = MathRules(votes=True)
    assert _checks((WRONG, RIGHT, RIGHT), rules, ["a", "b", "c"])[2][1] == "right"
    assert _checks(("", "", ""), rules, ["a", "b", "c"])[2][1] == "none"


@settings(max_examples=100)
@given(
    st.lists(st.tuples(ANY_TEXT, ANY_TEXT), min_size=1, max_size=3), st.booleans(), st.booleans()
)
def test_any_texts_score_in_range(turns, steps, is_shared):
    rules = MathRules(require_steps=steps, is_shared=is_shared)
    for score, low, high in ((score_grounded, 0.0, 1.0), (score_paper, -0.3, 1.2)):
        for verdict in _play(score, turns, rules):
            assert low - 1e-9 <= verdict.reward("solver") <= high + 1e-9


NUMBERS = st.sampled_from([RIGHT, WRONG, WORKED, "", "Answer: 5", "Answer: 6", "it is 72"])


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5), st.booleans(), st.booleans())
def test_no_later_path_beats_solving_at_once(turns, steps, is_shared):
    at_once = _rewards([(WORKED, WORKED)], require_steps=steps, is_shared=is_shared)
    assert sum(_rewards(turns, require_steps=steps, is_shared=is_shared)) <= sum(at_once) + 1e-9
