"""HTML that cannot be injected into: plain text is escaped wherever it enters a tag.

`tag` is the only way to make markup. Whatever is a plain `str` is shown as written; only `Html`,
which `tag` itself returns, passes as it is.
"""

import html
import re
from collections.abc import Sequence
from typing import TypeAlias

__all__ = ["Child", "Html", "clean", "page", "tag"]

_VOID = frozenset({"meta", "link", "input", "line", "rect", "circle", "path", "polyline", "br"})
# Control characters and lone surrogates have no place in a document.
_UNSHOWABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_CLOSES_STYLE = re.compile(r"</", re.IGNORECASE)


class Html(str):
    """Markup made by `tag`; joining it with plain text gives plain text again."""

    __slots__ = ()


Child: TypeAlias = "str | Sequence[Child] | None"


def clean(text: str) -> str:
    """Replace what no document can hold, and make every line end with a newline alone."""
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Html:
    """Return an element.

    Args:
        name: A tag name of ours, never from data.
        children: Escaped unless they are `Html`; sequences are flattened, None is left out.
        attributes: `class_` is `class`, other underscores are hyphens; None is left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(clean(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID and not children:
        return Html(f"<{name}{written}>" if name in {"meta", "br"} else f"<{name}{written}/>")
    return Html(f"<{name}{written}>{''.join(_flatten(children))}</{name}>")


def page(title: str, style: str, *body: Child) -> str:
    """Return a whole document that runs no script and asks no network for anything.

    Args:
        title: Of the window.
        style: A style sheet of ours.
        body: What `main` holds.
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
        tag("title", title),
        tag("style", Html(style)),
    )
    document = tag("html", head, tag("body", tag("main", *body)), lang="en")
    return f"<!doctype html>\n{document}\n"


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
