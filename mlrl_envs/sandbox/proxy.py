"""The judge's side of the border: a session with one candidate, and strict stand-ins.

A `Remote` forwards calls, attributes and `isinstance`, nothing else. `==`, `in`, `len`, `bool`
and iteration are never forwarded: each would let the candidate answer the test, or show it what
the test expects. Iterators alone hand out their items, one by one, as plain values.
"""

# ruff: noqa: ANN401  values of any type cross the border

import builtins
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mlrl_envs.sandbox import frames, tags
from mlrl_envs.sandbox.text import clean_line
from mlrl_envs.sandbox.wire import Codec, Wire, WireError

__all__ = [
    "CandidateError",
    "CandidateGoneError",
    "LoadFailedError",
    "Remote",
    "Session",
    "VerdictError",
]

REPLY_CAP = 8 << 20
CALLBACK_CAP = 100_000
# Attributes with two underscores that tests read; no other such name is ever asked for.
OPEN_DUNDERS = frozenset({"__name__", "__qualname__", "__doc__", "__dict__", "__annotations__"})


class CandidateGoneError(BaseException):
    """The candidate died or broke the protocol. No test can catch this as an `Exception`."""


class CandidateError(BaseException):
    """The candidate raised what no candidate may: SystemExit, GeneratorExit and the like."""


class VerdictError(Exception):
    """A test failed for a reason that is told as it is."""


class LoadFailedError(Exception):
    """The source does not load, or lacks an entry point."""


class Session:
    """One candidate behind one socket.

    Attributes:
        gone: Why the candidate can no longer be asked: "", "died" or "protocol_violation".
        foul: What the candidate raised in this test that no candidate may raise.
        memory_error: Whether it ever ran out of memory.
        raised: The exception it raised last, as rebuilt here.
        last: The last value that came back, for error texts.
    """

    def __init__(self, link: int, dunders: Sequence[str] = ()) -> None:
        self._link = link
        self._codec = Codec(self._export, self._resolve)
        self._remotes: dict[int, Any] = {}
        self._exported: list[Callable[..., Any]] = []
        self._callbacks = 0
        self._instance_kind = _kind_with(dunders)
        self._classes: set[int] = set()
        self.gone = ""
        self.foul = ""
        self.memory_error = False
        self.raised: BaseException | None = None
        self.last: tuple[Any, ...] = ()

    def load(self, source: str, entry_points: list[str]) -> list[Any]:
        """Hand the source over and return its entry points.

        Raises:
            LoadFailedError: If the source raises, or defines no such name.
            CandidateGoneError: If the candidate dies.
        """
        try:
            found = self._ask("load", 0, [], [source, entry_points])
            if len(found) != len(entry_points):
                self._lose("protocol_violation")
            self._classes = {
                _read(one, "_mlrl_handle") for one in found if issubclass(type(one), Remote)
            }
            return found
        except CandidateGoneError:
            raise
        except BaseException as error:  # noqa: BLE001  anything the source raises
            raise LoadFailedError(describe(error, self)) from None

    def request(self, operation: str, target: int, values: list[Any], extra: object) -> Any:
        """Ask the candidate for one thing and return the value, or raise what it raised."""
        answer = self._ask(operation, target, values, extra)
        if len(answer) != 1:
            self._lose("protocol_violation")
        self.last = (answer[0],)
        return answer[0]

    def _ask(self, operation: str, target: int, values: list[Any], extra: object) -> list[Any]:
        if self.gone:
            raise CandidateGoneError(self.gone)
        self._send(operation, target, values, extra)
        while True:
            kind, values, extra = self._receive()
            if kind == "value":
                return values
            if kind == "stop":
                raise StopIteration
            if kind == "raise":
                raise self._rebuild(values, extra)
            self._answer(kind, values, extra)

    def _send(self, operation: str, target: int, values: list[Any], extra: object) -> None:
        dropped = self._codec.sweep()
        try:
            changes, packed = self._codec.pack(values)
        except WireError as error:
            raise ValueError(f"the test passes {error}") from None
        message = [operation, target, changes, packed, dropped, extra]
        try:
            frames.send(self._link, json.dumps(message).encode())
        except OSError:
            self._lose("died")

    def _receive(self) -> tuple[str, list[Any], Any]:
        frame = self._receive_frame()
        try:
            kind, changes, values, output, extra = json.loads(frame)
            decoded = self._codec.unpack(changes, values)
            if kind not in KINDS or not isinstance(output, str):
                raise WireError("not a reply")
        except (WireError, ValueError, TypeError, RecursionError):
            self._lose("protocol_violation")
        if output:
            sys.stdout.write(output)
        return kind, decoded, extra

    def _receive_frame(self) -> bytes:
        frame = None
        try:
            frame = frames.receive(self._link, REPLY_CAP)
        except frames.FrameError:
            self._lose("protocol_violation")
        except OSError:
            pass
        return self._lose("died") if frame is None else frame

    def _lose(self, why: str) -> NoReturn:
        self.gone = self.gone or why
        raise CandidateGoneError(self.gone)

    def _rebuild(self, values: list[Any], extra: Any) -> BaseException:
        """Return the exception a reply describes, as a class of ours."""
        try:
            base, name, text, known = extra
            if not base:
                self.foul = f"{name} raised"
                return CandidateError(str(name))
            self.memory_error = self.memory_error or base == "MemoryError"
            kind = tags.EXCEPTIONS.get(base, Exception)
            own = self._remotes.get(known)
            if isinstance(own, type) and issubclass(own, Exception):
                kind = own
        except (TypeError, ValueError):
            self._lose("protocol_violation")
        self.raised = _instance(kind, values, f"{text}")
        return self.raised

    def _answer(self, kind: str, values: list[Any], extra: Any) -> None:
        """Run what the candidate may call: a function it was passed, or `input`."""
        self._callbacks += 1
        if self._callbacks > CALLBACK_CAP:
            self._lose("protocol_violation")
        try:
            if kind == "input":
                result = builtins.input(*values)
            else:
                number, names = extra
                split = len(values) - len(names)
                keywords = dict(zip(names, values[split:], strict=True))
                result = self._exported[number](*values[:split], **keywords)
        except Exception as error:  # noqa: BLE001  goes back to where it was called
            self._send("fault", 0, [error], None)
        else:
            self._send("answer", 0, [result], None)

    def _export(self, value: Any) -> Wire:
        if issubclass(type(value), Remote):
            return {"h": object.__getattribute__(value, "_mlrl_handle")}
        if isinstance(value, type):
            if value in tags.TYPE_NAMES:
                return {"T": tags.TYPE_NAMES[value]}
            for number, known in self._remotes.items():
                if known is value:
                    return {"h": number}
        self._exported.append(value)
        return {"j": len(self._exported) - 1}

    def _resolve(self, tag: str, payload: Any) -> Any:
        if tag == "j":
            return self._exported[payload]
        if tag != "h":
            raise WireError("an unknown tag")
        number, label, nature = payload
        if number not in self._remotes:
            self._remotes[int(number)] = self._stand_in(int(number), str(label), str(nature))
        return self._remotes[number]

    def _stand_in(self, number: int, label: str, nature: str) -> Any:
        if nature.startswith("E"):
            return type(label, (tags.EXCEPTIONS.get(nature[1:], Exception),), {})
        return (RemoteIterator if nature == "I" else Remote)(self, number, label)

    def is_made(self, maker: int, thing: Any) -> None:
        """Give what a test made of an entry point the operators that tests use on it."""
        if maker in self._classes and type(thing) is Remote:
            object.__setattr__(thing, "__class__", self._instance_kind)


_read = object.__getattribute__


class Remote:
    """A stand-in for one of the candidate's objects."""

    __slots__ = ("__weakref__", "_mlrl_handle", "_mlrl_label", "_mlrl_session")

    def __init__(self, session: Session, handle: int, label: str) -> None:
        object.__setattr__(self, "_mlrl_session", session)
        object.__setattr__(self, "_mlrl_handle", handle)
        object.__setattr__(self, "_mlrl_label", label)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the candidate's object."""
        result = _ask(self, "call", [*args, *kwargs.values()], list(kwargs))
        _read(self, "_mlrl_session").is_made(_read(self, "_mlrl_handle"), result)
        return result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in OPEN_DUNDERS:
            raise AttributeError(name)
        return _ask(self, "get", [], name)

    def __setattr__(self, name: str, value: object) -> None:
        _ask(self, "set", [value], name)

    def __delattr__(self, name: str) -> None:
        _ask(self, "del", [], name)

    def __instancecheck__(self, instance: object) -> bool:
        return (
            issubclass(type(instance), Remote)
            and _ask(self, "isinstance", [instance], None) is True
        )

    def __repr__(self) -> str:
        return f"<{object.__getattribute__(self, '_mlrl_label')}>"


class RemoteIterator(Remote):
    """A stand-in for an iterator, the one kind of object whose items cross one by one."""

    __slots__ = ()

    def __iter__(self) -> "RemoteIterator":
        return self

    def __next__(self) -> Any:
        return _ask(self, "next", [], None)

    def __contains__(self, _item: object) -> bool:
        raise TypeError("membership is not asked of a candidate's object")


def _kind_with(dunders: Sequence[str]) -> type[Remote]:
    """Return the stand-in for instances that tests make, with the operators they use on them."""
    members: dict[str, Any] = {name: _operator(name) for name in dunders}
    members.setdefault("__contains__", RemoteIterator.__contains__)
    return type("Remote", (Remote,), {"__slots__": (), **members}) if dunders else Remote


def _operator(name: str) -> Callable[..., Any]:
    """Return a method that forwards one operator, but no comparison with a plain value.

    The other side of such a comparison is what the test expects.
    """

    def forward(self: Remote, *args: Any) -> Any:
        if name in COMPARISONS and not issubclass(type(args[0]), Remote):
            return NotImplemented
        return _ask(self, "operator", list(args), name)

    return forward


COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
KINDS = frozenset({"value", "stop", "raise", "callback", "input"})


def _ask(remote: Remote, operation: str, values: list[Any], extra: object) -> Any:
    session: Session = _read(remote, "_mlrl_session")
    try:
        return session.request(operation, _read(remote, "_mlrl_handle"), values, extra)
    except StopIteration:
        if operation == "next":
            raise
        session._lose("protocol_violation")  # noqa: SLF001  same module


def _instance(kind: type[Exception], values: list[Any], text: str) -> Exception:
    try:
        return kind(*values)
    except Exception:  # noqa: BLE001  UnicodeDecodeError and others want exact arguments
        try:
            return kind(text)
        except Exception:  # noqa: BLE001
            return Exception(text)


def describe(error: BaseException, session: Session) -> str:
    """Return one short line on what went wrong in the candidate."""
    if session.gone:
        return "the program " + {"died": "died"}.get(session.gone, "broke the protocol")
    if session.foul:
        return session.foul
    if isinstance(error, VerdictError):
        return show(error, str)
    if isinstance(error, AssertionError) and error is not session.raised:
        # The tests' own message would say what they expect.
        return "false" + (f"; the last value was {show(session.last[0])}" if session.last else "")
    text = show(error, str)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def show(value: object, form: Callable[[object], str] = repr) -> str:
    """Return a value as one short line without memory addresses."""
    try:
        return clean_line(form(value))
    except Exception:  # noqa: BLE001  an int of a million digits has no repr
        return f"a {type(value).__name__}"
