"""Stumble 6: `mlrl list NAME` shows the options of everything that has some."""

import pytest

from mlrl_learners.cli.listing_entries import entry_of, listing

NAMES = listing()
KINDS = ("environments", "learners", "suites", "presets", "sections", "scripts")


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in NAMES[kind]])
def test_everything_with_a_name_is_described(kind, name):
    entry = entry_of(name)
    assert entry.summary
    assert any(group.options for group in entry.groups)


@pytest.mark.parametrize(
    "name", [name for kind in ("environments", "sections") for name in NAMES[kind]]
)
def test_every_option_has_a_meaning(name):
    group = entry_of(name).groups[0]
    assert [option.name for option in group.options if not option.meaning] == []


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("list mlrl/story-v1", "max_turns"),
        ("list mlrl/kuhn-v0", "script:nash"),
        ("list magrpo", "kl_coef"),
        ("list smoke", "mlrl/math-v2:sample"),
        ("list tiny", "tiny-random"),
        ("list endpoint", "max_tokens"),
        ("list script", "script:perfect"),
        ("list pipeline", "agents write in order"),
        ("list wandb", "wandb_project"),
        ("list opponents", "balance_seats"),
        ("list me.py:Guess", "An environment of a new user"),
        ("list my_learner.py:MyLearner", "replies"),
    ],
)
def test_list_shows_what_can_be_set(command, shown, here, type_in):
    status, out, err = type_in(command)
    assert (status, err) == (0, "")
    assert shown in out


def test_one_kind_of_names_is_listed(type_in, type_json):
    status, out, _ = type_in("list workflows")
    assert status == 0
    assert "planner-executor" in out
    assert "magrpo" not in out
    assert list(type_json("list learners")) == ["learners"]


def test_an_unknown_name_is_told_the_nearest(type_in):
    status, _, err = type_in("list mlrl/stroy-v1")
    assert status == 2
    assert "did you mean 'mlrl/story-v1'?" in err
