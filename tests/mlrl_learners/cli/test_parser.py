import json

import numpy as np
import pytest

from mlrl_learners.cli.parser import print_json, print_table
from mlrl_learners.errors import NumericsError

ERASE = "\x1b[2J"


def test_text_of_somebody_else_in_a_table_does_not_reach_the_terminal_as_control(capsys):
    print_table(("entry", f"{ERASE}name"), [("a\nb", ERASE), ("c", "\u202ed")])
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert len(printed.splitlines()) == 3


def test_numbers_of_numpy_are_printed_as_json_numbers(capsys):
    print_json({"reward": np.float32(0.5), "board": np.arange(2)})
    assert json.loads(capsys.readouterr().out) == {"reward": 0.5, "board": [0, 1]}


def test_what_is_no_json_is_an_error_and_not_printed(capsys):
    with pytest.raises(NumericsError, match=r"not finite: rewards\.a"):
        print_json({"rewards": {"a": float("nan")}})
    assert capsys.readouterr().out == ""
