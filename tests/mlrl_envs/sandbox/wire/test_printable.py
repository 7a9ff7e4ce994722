"""Tests of the cleaning of text from candidates."""

from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.sandbox.wire.printable import clean_line, clean_output


@given(st.text())
def test_lines_are_short_and_free_of_control_characters(text):
    line = clean_line(text)
    assert len(line) <= 200
    assert line.isprintable() or not any(ord(c) < 32 for c in line)


def test_addresses_and_paths_are_masked():
    assert clean_line("<a at 0x7f3a2b1c9d80> in /usr/lib/x.py") == "<a at 0x...> in <path>"


@given(st.binary())
def test_output_is_valid_text_for_any_bytes(raw):
    text = clean_output(raw, 50)
    assert len(text) <= 50
    text.encode()
    assert not any(ord(c) < 32 and c not in "\n\t" for c in text)
