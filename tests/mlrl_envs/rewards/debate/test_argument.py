import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.debate.argument import argument_parts, end_parts, is_touched, length_score

ANY_TEXT = st.text(st.characters(exclude_categories=()))
PROPOSITION = "Cities should close their centres to private cars."


@pytest.mark.parametrize(
    ("num_chars", "score"),
    [
        (0, 0.0),
        (1, 0.01),
        (99, 0.99),
        (100, 1.0),
        (500, 1.0),
        (501, 0.998),
        (600, 0.8),
        (750, 0.5),
        (751, 0.5),
        (10**6, 0.5),
    ],
)
def test_length_rule(num_chars, score):
    assert length_score(num_chars) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", (0, 0, 0, 0, 0)),
        ("x" * 50, (0.1, 0, 0, 0, 0)),
        ("x" * 100, (0.2, 0, 0, 0, 0)),
        # 30 characters, one evidence keyword, one reasoning keyword, one end, no word of the matter
        ("A study is good because it is.", (0.06, 0.125, 0.125, 0.03, 0)),
        # 23 characters, "cities" and "cars" recur, three ends
        ("Cities! No cars? Never.", (0.046, 0, 0, 0.09, 0.1)),
        # 38 characters; the same keyword twice is one hit
        ("Data, data, thus, hence... CENTRES! To", (0.076, 0.125, 0.25, 0.12, 0.05)),
        # two hits are full, more are no better
        ("study research data", (0.038, 0.25, 0, 0, 0)),
        # "should", "close", "their", "private" recur: full from three on
        ("They should close their private", (0.062, 0, 0, 0, 0.15)),
    ],
)
def test_hand_computed_arguments(text, parts):
    names = ("length", "evidence", "reasoning", "structure", "relevance")
    wanted = dict(zip(names, parts, strict=True))
    assert argument_parts(text, PROPOSITION) == pytest.approx(wanted, abs=1e-9)


def test_full_argument_is_worth_one():
    text = "Study data because thus cities close centres. . . . . " * 3
    assert sum(argument_parts(text, PROPOSITION).values()) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "consistency"),
    [
        (["a b"], 1.0),
        ([""], 0.0),
        (["a b", "a b"], 1.0),
        (["a b", "c d"], 0.0),
        (["a b c", "b c d"], 0.5),
        (["a b", "a b", "c d"], 0.5),
        (["", ""], 0.0),
        (["A B", "b, a!"], 1.0),
    ],
)
def test_consistency_is_the_mean_similarity_of_neighbours(arguments, consistency):
    parts = end_parts(arguments, PROPOSITION, ["nothing here"])
    assert parts["consistency"] == pytest.approx(0.2 * consistency, abs=1e-9)


@pytest.mark.parametrize(
    ("point", "text", "touched"),
    [
        ("cleaner air for residents", "Residents breathe cleaner things.", True),
        ("cleaner air for residents", "The residents sleep.", True),
        ("buses and trams run faster", "Faster now.", False),
        ("buses and trams run faster", "Trams are faster.", True),
        ("an air", "an air", False),
        ("", "", False),
    ],
)
def test_point_is_touched_by_half_of_its_long_words(point, text, touched):
    assert is_touched(point, text) is touched


def test_hand_computed_end():
    # Arguments worth 0.36 and 0.05; one of two points touched over both; no word in common.
    arguments = ["A study is good because it is. ", "trams faster xxxxxxxxxxxx"]
    first, second = (sum(argument_parts(text, PROPOSITION).values()) for text in arguments)
    assert (first, second) == pytest.approx((0.062 + 0.28, 0.05), abs=1e-9)
    parts = end_parts(arguments, PROPOSITION, ["buses and trams run faster", "cleaner streets"])
    wanted = {"mean_argument": 0.6 * (0.342 + 0.05) / 2, "consistency": 0.0, "coverage": 0.1}
    assert parts == pytest.approx(wanted, abs=1e-9)


@given(st.lists(ANY_TEXT, min_size=1, max_size=4), ANY_TEXT)
def test_any_texts_score_in_range(arguments, proposition):
    parts = argument_parts(arguments[0], proposition)
    assert 0.0 <= sum(parts.values()) <= 1.0 + 1e-9
    end = end_parts(arguments, proposition, ["a point", proposition])
    assert 0.0 <= sum(end.values()) <= 1.0 + 1e-9
