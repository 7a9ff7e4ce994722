import pytest

from mlrl_learners.report.judge_words import judge_words
from mlrl_learners.report.turn_pictures import turn_pictures, without_pictures
from mlrl_learners.runs.stored import StoredTurn

SAYS = {"model": "qwen", "text": "PRO argued <b>well</b>.\nPRO: 7 CON: 4"}


def test_the_words_of_a_judge_are_shown_once_a_turn():
    both = {agent: {"checks": [], "judge": SAYS} for agent in ("pro", "con")}
    (shown,) = turn_pictures(StoredTurn({}, {}, {}, {}, diagnostics=both))
    assert shown.count("PRO: 7 CON: 4") == 1
    assert "qwen" in shown
    assert "<b>" not in shown
    assert without_pictures(both["pro"]) == {"checks": []}


@pytest.mark.parametrize("says", [None, 3, "words", {}, {"model": 1, "text": "x"}, {"text": "x"}])
def test_another_shape_is_no_judge(says):
    assert judge_words(says) is None
