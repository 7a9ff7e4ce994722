"""The list of TextArena's games, and its table in the docs."""

import sys

import pytest

from benchmarks.textarena.games import BEGIN, END, NO_COMPILE, NOT_TRIED, PAGE, table, with_python
from mlrl_envs.interop.textarena_games import ArenaGame, ArenaVariant, games, split_id


def test_the_page_has_the_table_of_the_list():
    shown = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    assert shown.strip() == table(games())


def test_a_row_has_players_variants_and_reasons():
    variants = {
        "": ArenaVariant((2, 3)),
        "hard": ArenaVariant(reason="needs word lists"),
        "hard-train": ArenaVariant(reason="needs word lists"),
    }
    later = ArenaGame("Later-v0", {"": ArenaVariant((2,), python=(3, 12))})
    closed = ArenaGame("Jury-v0", {"": ArenaVariant(reason="asks a model")})
    lines = table(
        {"A-v0": ArenaGame("A-v0", variants), "Later-v0": later, "Jury-v0": closed}
    ).splitlines()
    hard = "`hard`, `hard-train`: needs word lists"
    assert lines[2] == f"| `A-v0` | 2 to 3 | `(default)` | {hard} |"
    assert lines[3] == "| `Later-v0` | 2 | `(default)` | needs Python 3.12 |"
    assert lines[4] == "| `Jury-v0` | - | none | asks a model |"


def test_no_game_of_the_list_is_left_untried():
    assert NOT_TRIED not in {
        each.reason for game in games().values() for each in game.variants.values()
    }


@pytest.mark.parametrize(
    ("before", "needed"),
    [
        ({"": {"reason": f"its code {NO_COMPILE} Python 3.5"}}, "{}.{}".format(*sys.version_info)),
        ({"": {"players": [2], "python": "3.4"}}, "3.4"),
        ({"": {"reason": NOT_TRIED}}, None),
        ({"": {"players": [2]}}, None),
        ({}, None),
    ],
)
def test_the_list_keeps_which_python_a_game_needs(before, needed):
    after = with_python(before, {"": {"players": [2]}, "hard": {"reason": "needs word lists"}})
    assert after[""].get("python") == needed
    assert "python" not in after["hard"]


def test_an_id_of_textarena_is_a_game_and_a_variant():
    assert split_id("Nim-v0") == ("Nim-v0", "")
    assert split_id("Nim-v0-large-train") == ("Nim-v0", "large-train")
    assert split_id("Taboo-v0-city/country") == ("Taboo-v0", "city/country")
