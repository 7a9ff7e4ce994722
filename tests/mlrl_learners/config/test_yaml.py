import math
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlrl_learners.config.yaml import dump_yaml, parse_value, parse_yaml
from mlrl_learners.errors import ConfigError

scalars = st.text("aZ09_-+. /:#e~nulltrueoff", max_size=8) | st.from_regex(
    r"[-+]?[0-9.]{1,4}(e[-+]?[0-9])?", fullmatch=True
)


@given(text=scalars)
@example("null")
@example("-1")
@example("1e-5")
@example("010")
@example("off")
@example("a b")
@example("inf")
@example("-inf")
def test_a_value_is_read_like_a_document(text):
    try:
        expected = parse_yaml(text)
    except ConfigError:
        with pytest.raises(ConfigError):
            parse_value(text)
        return
    assert repr(parse_value(text)) == repr(expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("no", "no"),
        ("true", True),
        ("1e-5", 1e-5),
        ("3", 3),
        ("-2.5", -2.5),
        ("010", "010"),
        ("1_000", "1_000"),
        ("2026-01-01", "2026-01-01"),
        ("null", None),
        ("inf", math.inf),
        (".inf", math.inf),
        ("info", "info"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text, value):
    assert parse_yaml(text) == value
    assert parse_yaml(dump_yaml({"key": value})) == {"key": value}


@pytest.mark.parametrize("text", ["8", "1e-5", "mlrl/story-v1", "a word", "-1", "true"])
def test_numbers_and_words_need_no_package(text, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    parse_value(text)


def test_anything_else_names_the_package_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ConfigError, match="pip install pyyaml"):
        parse_value("[1, a]")


def test_without_the_package_what_was_written_can_be_read_with_and_without_it(monkeypatch):
    mapping = {"env": {"id": "x", "options": {"lr": 1e-5, "word": "off", "none": None}}}
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "yaml", None)
        text = dump_yaml(mapping)
        assert parse_yaml(text) == mapping
    assert parse_yaml(text) == mapping


@pytest.mark.parametrize("text", ["a: 1\nb: 2\na: 3", "x: {nodes: {w: {}, w: {}}}"])
def test_a_key_that_is_there_twice_is_one_line(text):
    with pytest.raises(ConfigError, match=r"run.yaml has the key '[aw]' twice, again in line [13]"):
        parse_yaml(text, "run.yaml")
