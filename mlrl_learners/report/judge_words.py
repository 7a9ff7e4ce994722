"""Words of a judge: the reply of the model that scored a turn."""

from collections.abc import Mapping

from mlrl_learners.report.html import Html, isolated, scrolled, tag

__all__ = ["judge_words"]

_MOST_CHARACTERS = 4_000


def judge_words(says: object) -> Html | None:
    """Return the reply of a judge; None if there is none.

    Args:
        says: The part `judge` of an agent's diagnostics, with `model` and `text`.
    """
    if not isinstance(says, Mapping):
        return None
    model, text = says.get("model"), says.get("text")
    if not (isinstance(model, str) and isinstance(text, str)):
        return None
    said = tag("strong", "judge ", isolated(model), " writes")
    shown = scrolled("div", text[:_MOST_CHARACTERS], class_="prose text")
    return tag("div", tag("div", said, class_="who"), shown, class_="judge")
