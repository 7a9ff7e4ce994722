import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.report.highlight import _lexer, highlight
from mlrl_learners.report.html import clean


def text_of(markup):
    pieces = []
    reader = HTMLParser(convert_charrefs=True)
    reader.handle_data = pieces.append
    reader.feed(markup)
    reader.close()
    return "".join(pieces)


@given(
    st.text(st.characters(exclude_categories=()), max_size=60),
    st.sampled_from(["python", "", "json", "klingon", "Python 3 "]),
)
def test_any_code_is_shown_as_written(code, language):
    shown = highlight(code, language)
    assert text_of(shown) == clean(code)
    assert "<script" not in shown


def test_keywords_texts_and_comments_differ():
    pytest.importorskip("pygments")
    shown = highlight("def f():  # why\n    return 'x'\n")
    for name in ("hk", "hf", "hc", "hs"):
        assert f'class="{name}"' in shown


def test_without_pygments_code_is_plain(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "pygments"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygments", None)
    _lexer.cache_clear()
    assert highlight("def f(): ...") == "<code>def f(): ...</code>"
    _lexer.cache_clear()
