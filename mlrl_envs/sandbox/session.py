"""Sessions: workspaces of interpreters and files that can be replayed from their history.

The state of a session is the list of calls made so far, so it can be copied, pickled and replayed.
A live process is a cache of that list. It continues a history if the calls it has played are a
prefix of that history; otherwise the history is replayed from its start. A cell that had to be
stopped is stored in the history as a restart of its interpreter, and its effects are discarded.
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
READ_ONLY = ("read", "list")
LOST = frozenset(("timeout", "cpu_limit", "died", "hostile", "protocol_violation"))


@dataclass(frozen=True, slots=True)
class Call:
    """One operation in a workspace.

    Attributes:
        kind: `"python"` runs a cell, `"restart"` ends an interpreter; the others act on files.
        name: Name of the interpreter, or path of the file relative to the workspace.
        text: Source of the cell, or content to write.
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
    """Result of a call.

    Attributes:
        status: `"ok"`; `"error"` if the cell raised an exception or the file operation failed;
            any other status names how the interpreter was lost, together with its variables.
        text: Output of the cell, content of the file, or one line that describes the error.
    """

    status: ReplyStatus
    text: str


@dataclass(frozen=True, slots=True)
class Script:
    """Calls to play after a history.

    Attributes:
        history: The calls made before, as returned by `remembered`.
        calls: The calls to make now.
        seconds: Time limit of one call; None for the sandbox's `test_seconds`.
    """

    history: tuple[Call, ...]
    calls: tuple[Call, ...]
    seconds: float | None = None


class Player(Protocol):
    """The method of `Sandbox` that a session needs."""

    def play_many(self, scripts: Sequence[Script]) -> list[list[Reply]]:
        """Play scripts and return their replies; see `mlrl_envs.sandbox.Sandbox.play_many`."""
        ...


def remembered(call: Call, reply: Reply) -> tuple[Call, ...]:
    """Return the calls by which a history records a call and its reply.

    A call that lost its interpreter is recorded as the restart of that interpreter. Calls that only
    read are not recorded.
    """
    if reply.status in LOST:
        return (Call("restart", call.name),)
    return () if call.kind in READ_ONLY else (call,)


class Session:
    """Workspace with interpreters and files, created by `Sandbox.session`.

    Copies and pickles continue independently from the same history.

    Args:
        player: The sandbox that plays the calls.
        files: Initial contents of the directory, by path.
        seconds: Time limit of one call; None for the sandbox's `test_seconds`.

    Attributes:
        history: The calls that lead to the current state, as returned by `remembered`.
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
        """Run a cell and return its output; the value of a final expression is shown unless None.

        Errors in a cell are reported in the reply.

        Args:
            source: Source of the cell.
            interpreter: Name of the interpreter that runs it.

        Raises:
            InfraError: If no worker can be started.
        """
        return self.play(Call("python", interpreter, source))

    def read(self, path: str) -> Reply:
        """Read a file."""
        return self.play(Call("read", path))

    def write(self, path: str, text: str) -> Reply:
        """Write a file, and create the directories of its path."""
        return self.play(Call("write", path, text))

    def list(self) -> Reply:
        """List all files with their sizes."""
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
