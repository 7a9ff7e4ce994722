"""Code in colours, where Pygments is installed; as plain text where it is not.

Pygments only says what each piece of text is; the markup is made by `tag`, as everywhere.
"""

import functools
from typing import TYPE_CHECKING

from mlrl_learners.report.html import Html, clean, tag

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

__all__ = ["highlight"]

# The class in the style sheet, by the kind of token; the most special kind that is listed counts.
_CLASSES = {
    "Token.Keyword": "hk",
    "Token.Operator.Word": "hk",
    "Token.Name.Function": "hf",
    "Token.Name.Class": "hf",
    "Token.Name.Decorator": "hf",
    "Token.Name.Builtin": "hb",
    "Token.Name.Exception": "hb",
    "Token.Literal.String": "hs",
    "Token.Literal.Number": "hn",
    "Token.Comment": "hc",
}


def highlight(code: str, language: str = "python") -> Html:
    """Return a code element that shows `code` as written.

    Args:
        code: Any text; it need not be right code.
        language: A name that Pygments knows; any other one leaves the text without colours.
    """
    lexer = _lexer(language.strip().lower() or "python")
    if lexer is None:
        return tag("code", code)
    pieces: list[str] = []
    for _, kind, text in lexer.get_tokens_unprocessed(clean(code)):  # the other way drops some
        name = _class_of(kind)
        pieces.append(tag("span", text, class_=name) if name else text)
    return tag("code", pieces)


@functools.lru_cache(maxsize=32)
def _lexer(language: str) -> "Lexer | None":
    try:
        from pygments.lexers import get_lexer_by_name
        from pygments.util import ClassNotFound
    except ImportError:
        return None
    try:
        return get_lexer_by_name(language)
    except ClassNotFound:
        return None


@functools.cache
def _class_of(kind: "_TokenType") -> str:
    name = str(kind)
    while name:
        if name in _CLASSES:
            return _CLASSES[name]
        name = name.rpartition(".")[0]
    return ""
