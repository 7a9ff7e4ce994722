"""Sessions: a workspace of interpreters and files that is played again from its history.

A session is the list of calls made so far, nothing else: that is what makes it picklable, copyable
and rescorable. A live process is only a cache of that list. It is used again where what it has
played is how a history begins; elsewhere the history is played from its start. A cell that had to
be stopped is remembered as the restart of its interpreter, and what it left behind is thrown away.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from mlrl_envs.errors import InvalidArgumentError, unknown_name

__all__ = ["LOST", "Call", "CallKind", "Reply", "ReplyStatus", "Script", "Session", "remembered"]

CallKind = Literal["python", "read", "write", "list", "delete", "restart"]
KINDS = ("python", "read", "write", "list", "delete", "restart")
ReplyStatus = Literal[
    "ok", "error", "timeout", "cpu_limit", "died", "hostile", "protocol_violation"
]
READING = ("read", "list")
LOST = frozenset(("timeout", "cpu_limit", "died", "hostile", "protocol_violation"))


@dataclass(frozen=True, slots=True)
class Call:
    """One thing that is done in a workspace.

    Attributes:
        kind: `"python"` runs a cell, `"restart"` ends an interpreter; the others act on a file.
        name: Which interpreter, or which path; a path is relative to the workspace.
        text: The cell's source, or what is written to the file.
    """

    kind: CallKind
    name: str = ""
    text: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_name("kind of call", self.kind, KINDS)
        for label, value in (("name", self.name), ("text", self.text)):
            if not isinstance(value, str):
                raise InvalidArgumentError(f"{label} must be a str, got {value!r}")


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a call.

    Attributes:
        status: `"ok"`; `"error"` if the cell raised or the path was refused; else how the
            interpreter was lost, and its names with it.
        text: What the cell showed, the file's content, or one line that says what is wrong.
    """

    status: ReplyStatus
    text: str


@dataclass(frozen=True, slots=True)
class Script:
    """Calls to be played after a history.

    Attributes:
        history: What was done before, as `remembered`.
        calls: What is to be done now.
        seconds: Time limit of one call; None for the sandbox's `test_seconds`.
    """

    history: tuple[Call, ...]
    calls: tuple[Call, ...]
    seconds: float | None = None


class Player(Protocol):
    """What a session needs of a sandbox."""

    def play_many(self, scripts: Sequence[Script]) -> list[list[Reply]]:
        """Play scripts, order kept; see `mlrl_envs.sandbox.Sandbox.play_many`."""
        ...


def remembered(call: Call, reply: Reply) -> tuple[Call, ...]:
    """Return what a history keeps of a call: a lost interpreter was, in effect, restarted.

    Nothing is kept of what only reads.
    """
    if reply.status in LOST:
        return (Call("restart", call.name),)
    return () if call.kind in READING else (call,)


class Session:
    """A workspace as one object; `Sandbox.session` makes one.

    Copies and pickles go on independently from the same history.

    Args:
        player: The sandbox it is played in.
        files: What the directory holds at first, by path.
        seconds: Time limit of one call; None for the sandbox's `test_seconds`.

    Attributes:
        history: The calls that lead to its state, as `remembered`.
    """

    def __init__(
        self, player: Player, files: Mapping[str, str] | None = None, seconds: float | None = None
    ) -> None:
        self._player = player
        self._seconds = seconds
        self.history: tuple[Call, ...] = tuple(
            Call("write", path, text) for path, text in (files or {}).items()
        )

    def run(self, source: str, interpreter: str = "") -> Reply:
        """Run a cell; the value of a last expression is shown unless it is None.

        Raises:
            InfraError: If no worker can be started; nothing that a cell does raises.
        """
        return self.play(Call("python", interpreter, source))

    def read(self, path: str) -> Reply:
        """Read a file."""
        return self.play(Call("read", path))

    def write(self, path: str, text: str) -> Reply:
        """Write a file, with the directories above it."""
        return self.play(Call("write", path, text))

    def list(self) -> Reply:
        """List every file."""
        return self.play(Call("list"))

    def delete(self, path: str) -> Reply:
        """Delete a file or an empty directory."""
        return self.play(Call("delete", path))

    def play(self, call: Call) -> Reply:
        """Make one call of any kind."""
        ((reply,),) = self._player.play_many([Script(self.history, (call,), self._seconds)])
        self.history = (*self.history, *remembered(call, reply))
        return reply

    def __deepcopy__(self, memo: dict[int, object]) -> "Session":
        return copy.copy(self)  # the history is immutable, the sandbox shared
