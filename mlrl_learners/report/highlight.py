"""Syntax highlighting with Pygments; plain text if it is not installed.

Pygments only classifies tokens; the markup is made by `tag`.
"""

import functools
from typing import TYPE_CHECKING

from mlrl_learners.report.html import Html, clean, tag

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

__all__ = ["highlight"]

# Kind of token -> class in the style sheet. A kind that is not listed has that of its parent.
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
    """Return a code element with the text of `code` unchanged.

    Args:
        code: Any text; it may be invalid code.
        language: Name of a Pygments lexer; an unknown one gives plain text.
    """
    lexer = _lexer(language.strip().lower() or "python")
    if lexer is None:
        return tag("code", code)
    pieces: list[str] = []
    for _, kind, text in lexer.get_tokens_unprocessed(clean(code)):  # get_tokens drops some text
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
