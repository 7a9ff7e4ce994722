"""Prompts of the nodes of a workflow: templates filled with an observation and answers.

A template is a text with the fields

- `{task}`: what the environment shows the node's agent, in later turns with its feedback
- `{answers}`: the answers that the node reads, each under a line `NAME wrote:`
- `{NAME}`: the answer of one node that it reads
- `{role}`, `{name}`, `{agent}`: of the node itself

Paragraphs that end up empty are left out. Answers of models cannot imitate the text around them: a
line of an answer that looks like a heading, or that equals a line of the template, is marked by
`> `.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Mapping

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.parsing.combining import limit_combining
from mlrl_envs.parsing.text import shorten
from mlrl_envs.workflows.graph import Node

__all__ = ["MAX_QUOTED_CHARS", "check_template", "prompt_of", "quoted"]

MAX_QUOTED_CHARS = 20_000
MAX_USES = 4  # of a field in a template, so that a short one makes no huge prompt
OWN_FIELDS = ("task", "answers", "role", "name", "agent")
_FIRST = "{task}\n\n{role}"
_LATER = (
    "{task}\n\n{role}\n\n{answers}\n\n"
    "Use what they wrote for your own answer, in the format asked for above."
)
_HEADING = re.compile(r".{0,200}\bwrote\W*:\W*")


def prompt_of(node: Node, task: str, answers: Mapping[str, str]) -> str:
    """Return what a node reads.

    Args:
        node: The node.
        task: What the environment shows its agent.
        answers: The last answer of each node that has written.
    """
    read = {name: answers[name] for name in node.reads if name in answers}
    is_first = bool(node.reads) and not read
    template = (node.first or _FIRST) if is_first else node.prompt or (_LATER if read else _FIRST)
    marked = {name: quoted(text, f"{template}\n{node.role}") for name, text in read.items()}
    values = {
        **{name: marked.get(name, "") for name in node.reads},
        "task": task,
        "role": node.role,
        "name": node.name,
        "agent": str(node.agent),
        "answers": _answers(node.name, marked),
    }
    paragraphs = (_filled(paragraph, values) for paragraph in template.split("\n\n"))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def quoted(text: str, template: str = "") -> str:
    """Return an answer as it is quoted: long ones are cut, and imitations of headings marked.

    Args:
        text: The answer.
        template: The text around the quotation, whose lines the answer must not imitate.
    """
    cut = shorten(text, MAX_QUOTED_CHARS)
    own = {_plain(line) for line in template.splitlines()} - {""}
    lines = cut.splitlines(keepends=True)
    return "".join(f"> {line}" if _imitates(line, own) else line for line in lines)


def check_template(node: Node, template: str) -> None:
    """Check the fields of a template.

    Raises:
        UnknownNameError: If a field is neither a node that is read nor one of the fields above.
        InvalidArgumentError: If braces do not match, a field has more than a name, or one is
            written more than `MAX_USES` times.
    """
    known, uses = {*OWN_FIELDS, *node.reads}, Counter[str]()
    for paragraph in template.split("\n\n"):
        try:
            parts = list(string.Formatter().parse(paragraph))
        except ValueError as error:
            raise InvalidArgumentError(
                f"the prompt of node {node.name!r} is no template ({error}); write {{{{ for a brace"
            ) from error
        for _, field, form, conversion in parts:
            if field is None:
                continue
            if field not in known:
                raise unknown_name(f"field in the prompt of node {node.name!r}", field, known)
            if form or conversion:
                raise InvalidArgumentError(
                    f"the prompt of node {node.name!r} formats {field!r}: write {{{field}}}"
                )
            uses[field] += 1
    if uses and max(uses.values()) > MAX_USES:
        field = uses.most_common(1)[0][0]
        raise InvalidArgumentError(
            f"the prompt of node {node.name!r} has {{{field}}} {uses[field]} times, "
            f"at most {MAX_USES} are possible"
        )


def _filled(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its fields replaced; `format` would take digits as positions."""
    return "".join(
        text if field is None else text + values[field]
        for text, field, _, _ in string.Formatter().parse(template)
    )


def _answers(reader: str, read: Mapping[str, str]) -> str:
    """Quote answers under their headings, the reader's own first."""
    own = [f"You wrote:\n{read[reader]}"] if reader in read else []
    others = [f"{name} wrote:\n{text}" for name, text in read.items() if name != reader]
    return "\n\n".join([*own, *others])


def _imitates(line: str, own: set[str]) -> bool:
    plain = _plain(line)
    return bool(_HEADING.fullmatch(plain)) or plain in own


def _plain(line: str) -> str:
    """Return a line as a reader sees it: compatible letters, no invisible ones, lower case."""
    if not line.isascii():
        line = unicodedata.normalize("NFKC", limit_combining(line))
        line = "".join(c for c in line if unicodedata.category(c) not in ("Cf", "Mn", "Cc"))
    return " ".join(line.casefold().split())
