"""HTML construction with automatic escaping.

`tag` is the only way to create markup. A plain `str` is escaped; `Html`, which `tag` returns, is
inserted unchanged.
"""

import html
import re
from collections.abc import Sequence
from typing import TypeAlias

__all__ = [
    "Child",
    "Html",
    "clean",
    "isolated",
    "mark_words",
    "page",
    "scrolled",
    "tag",
    "without_overrides",
]

_VOID = frozenset({"meta", "link", "input", "line", "rect", "circle", "path", "polyline", "br"})
# Control characters and lone surrogates are not allowed in HTML.
_UNSHOWABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_DIRECTIONS = re.compile(r"[\u202a-\u202e\u2066-\u2069]")  # embeddings, overrides and isolates
_TAG = re.compile(r"(<[^>]*>)")  # `tag` escapes angle brackets in texts and attributes
_CLOSES_STYLE = re.compile(r"</", re.IGNORECASE)


class Html(str):
    """Markup made by `tag`; concatenation with a `str` gives a `str`, which is escaped again."""

    __slots__ = ()


Child: TypeAlias = "str | Sequence[Child] | None"


def clean(text: str) -> str:
    """Replace characters that HTML does not allow, and convert line ends to newlines."""
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Html:
    """Return an element.

    Args:
        name: Name of the element; must not come from data.
        children: Escaped unless they are `Html`; sequences are flattened, None is omitted.
        attributes: `class_` is written as `class`, other underscores as hyphens; None is omitted.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(clean(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID and not children:
        return Html(f"<{name}{written}>" if name in {"meta", "br"} else f"<{name}{written}/>")
    return Html(f"<{name}{written}>{''.join(_flatten(children))}</{name}>")


def scrolled(name: str, /, *children: Child, **attributes: str | float | None) -> Html:
    """Return an element that may be larger than its place, and that keys can scroll.

    The arguments are those of `tag`.
    """
    return tag(name, *children, tabindex=0, **attributes)


def isolated(text: str) -> Html:
    """Return a name whose direction does not change the text beside it.

    A direction override in a name would otherwise show 0.5 as 5.0.
    """
    return tag("bdi", text)


def mark_words(markup: Html, words: str) -> Html:
    """Return markup in which every occurrence of `words`, regardless of case, is marked.

    An occurrence may lie in several elements; each part is then marked.
    """
    pieces = _TAG.split(markup)
    texts = [html.unescape(text) for text in pieces[::2]]
    spans = _occurrences("".join(texts), words.casefold())
    if not spans:
        return markup
    written: list[str] = []
    start = 0
    for text, element in zip(texts, [*pieces[1::2], ""], strict=True):
        end, at = start + len(text), start
        for first, last in spans:
            low, high = max(first, at), min(last, end)
            if low < high:
                written.append(html.escape(text[at - start : low - start]))
                written.append(tag("mark", text[low - start : high - start]))
                at = high
        written += [html.escape(text[at - start :]), element]
        start = end
    return Html("".join(written))


def without_overrides(text: str) -> str:
    """Replace characters that change the direction of text, for names where no tag is possible."""
    return _DIRECTIONS.sub("\N{REPLACEMENT CHARACTER}", text)


def page(title: str, style: str, *body: Child) -> str:
    """Return a document without scripts that loads nothing from the network.

    Args:
        title: Title of the window.
        style: Style sheet; must not come from data.
        body: Content of `main`.

    Raises:
        ValueError: If the style sheet contains `</`.
    """
    if _CLOSES_STYLE.search(style):
        raise ValueError("the style sheet must not hold '</'")
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", without_overrides(title)),
        tag("style", Html(style)),
    )
    document = tag("html", head, tag("body", tag("main", *body)), lang="en")
    return f"<!doctype html>\n{document}\n"


def _occurrences(text: str, wanted: str) -> list[tuple[int, int]]:
    """Return begin and end of every place of `text` that is `wanted` when its case is folded."""
    folded = [character.casefold() for character in text]  # one character may become several
    places = [index for index, parts in enumerate(folded) for _ in parts]
    found: list[tuple[int, int]] = []
    whole = "".join(folded)
    at = whole.find(wanted) if wanted else -1
    while at >= 0:
        found.append((places[at], places[at + len(wanted) - 1] + 1))
        at = whole.find(wanted, at + len(wanted))
    return found


def _flatten(children: Sequence[Child]) -> list[str]:
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            parts.append(child if isinstance(child, Html) else html.escape(clean(child)))
        else:
            parts.extend(_flatten(child))
    return parts
