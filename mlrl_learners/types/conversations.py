"""Observations that know the earlier turns of their agent."""

from collections.abc import Mapping, Sequence

__all__ = ["Conversation", "Message", "chat_messages", "continued", "conversations"]

Exchange = tuple[str, str]
"""An observation of an agent and its answer."""
Message = tuple[str, str]
"""Role and text."""


class Conversation(str):
    """An observation, which is a text for every actor, with the earlier turns of its agent.

    Attributes:
        earlier: What the agent read and answered in each earlier turn in which it acted.
    """

    earlier: tuple[Exchange, ...]

    def __new__(cls, text: str, earlier: Sequence[Exchange] = ()) -> "Conversation":
        """Return the text with the earlier turns."""
        made = super().__new__(cls, text)
        made.earlier = tuple(earlier)
        return made

    def __getnewargs__(self) -> tuple[str, tuple[Exchange, ...]]:  # type: ignore[override]
        """Return what copies and pickles are made of."""
        return str(self), self.earlier


def conversations(
    observations: Mapping[str, str], earlier: Mapping[str, Sequence[Exchange]]
) -> dict[str, str]:
    """Return observations with the earlier turns of their agents, where there are any."""
    return {
        agent: Conversation(text, earlier[agent]) if earlier.get(agent) else text
        for agent, text in observations.items()
    }


def continued(
    read: Mapping[str, str], wrote: Mapping[str, str], earlier: Mapping[str, Sequence[Exchange]]
) -> dict[str, tuple[Exchange, ...]]:
    """Return the turns of each agent after one in which some of them acted.

    Args:
        read: Observation of each agent that acted.
        wrote: Its answer.
        earlier: Turns of each agent before.
    """
    after = {agent: tuple(turns) for agent, turns in earlier.items()}
    for agent, answer in wrote.items():
        after[agent] = (*after.get(agent, ()), (str(read[agent]), answer))
    return after


def chat_messages(observation: str, earlier: Sequence[tuple[str, str]]) -> list[Message]:
    """Return the messages of a chat, as role and text, with the observation as the last.

    A user message that begins with the whole user message before it has only the rest of it.

    Args:
        observation: What the agent reads.
        earlier: What it read and answered before.
    """
    messages: list[Message] = []
    before = ""
    for read, answer in earlier:
        messages += [("user", _rest(_encodable(read), before)), ("assistant", _encodable(answer))]
        before = _encodable(read)
    return [*messages, ("user", _rest(_encodable(observation), before))]


def _rest(text: str, before: str) -> str:
    """Return what follows `before` in a text that begins with it, or else the text."""
    is_longer = before and text.startswith(before)
    return (text.removeprefix(before).lstrip() or text) if is_longer else text


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # replaces lone surrogates
