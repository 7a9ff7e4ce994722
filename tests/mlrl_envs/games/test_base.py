import time

import pytest

from mlrl_envs.games.base import named_move, tagged

BETS = ("check", "bet")
TAKES = ("1 from A", "1 from B", "11 from A")


@pytest.mark.parametrize(
    ("text", "legal", "move"),
    [
        ("<move>bet</move>", BETS, "bet"),
        ("<MOVE>\n Bet. </Move>", BETS, "bet"),
        ("I think.\n<move>check</move> so I check", BETS, "check"),
        ("bet", BETS, "bet"),
        ("If I check, I lose.\n\n  I bet!  \n\n", BETS, "bet"),
        ("**bet**", BETS, "bet"),
        ("Move: bet", BETS, "bet"),
        ("<move>bet</move> or <move>bet</move>", BETS, "bet"),
        ("The form is <move>...</move>, so <move>bet</move>", BETS, "bet"),
        ("```\nbet\n```", BETS, "bet"),
        ("1  FROM   a", TAKES, "1 from A"),
        ("I take 11 from A", TAKES, "11 from A"),
    ],
)
def test_move_is_found(text, legal, move):
    assert named_move(text, legal) == move


@pytest.mark.parametrize(
    "text", ["-1", "\u22121", "\u20131", "1.5", "1,5", "0.1", "2.5 tokens", "I give -2."]
)
def test_a_negative_or_decimal_number_is_no_move(text):
    assert named_move(text, ("1", "2")) is None
    assert named_move(tagged(f"play {text}"), ("play 1", "play 2")) is None


@pytest.mark.parametrize("text", ["1", "1.", "(1)", "1, of course", "Move:1", "**1**", "So... 1!"])
def test_a_number_is_a_move_with_punctuation_around_it(text):
    assert named_move(text, ("1", "2")) == "1"


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ("", BETS),
        (" \n\t ", BETS),
        ("<move></move>", BETS),
        ("<move>raise</move>", BETS),
        ("bet <move>...</move>", BETS),
        ("```\n```", BETS),
        ("<move>bet</move><move>check</move>", BETS),
        ("<move>raise</move><move>bet</move>", BETS),
        ("check or bet", BETS),
        ("bets", BETS),
        ("alphabet", BETS),
        ("bet\nI do not know.", BETS),
        ("1", TAKES),
        ("from A", TAKES),
        ("111 from A", TAKES),
        ("\ud800", BETS),
        ("bet" * 100_000, BETS),
        ("<move>" * 100_000, BETS),
    ],
)
def test_unclear_answer_names_no_move(text, legal):
    assert named_move(text, legal) is None


def test_name_inside_a_longer_name_does_not_count():
    assert named_move("take all", ("take", "take all")) == "take all"
    assert named_move("I take all", ("take", "take all")) == "take all"
    assert named_move("take, take all", ("take", "take all")) is None


def test_moves_are_read_from_the_end_of_a_long_text():
    assert named_move("x" * 10**6 + "\n<move>bet</move>", BETS) == "bet"
    assert named_move("<move>bet</move>" + "x" * 10**6, BETS) is None


@pytest.mark.parametrize("piece", ["bet ", "<move>bet</move>", "<move>", "bid 1x1 ", "x"])
def test_long_texts_are_read_in_little_time(piece):
    legal = [f"bid {count}x{face}" for count in range(1, 26) for face in range(1, 7)]
    started = time.process_time()
    named_move(piece * (10**6 // len(piece)), ["bet", "check", *legal])
    assert time.process_time() - started < 0.2


def test_tagged_move_is_read_back():
    assert all(named_move(tagged(move), TAKES) == move for move in TAKES)
