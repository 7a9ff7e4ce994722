"""Judge's end of the connection to one candidate.

The judge sends requests (load the source, call an object, read an attribute) and decodes the
replies. Nothing in a reply is trusted: whatever a candidate process can send is either a value
that a function could have returned, or a protocol violation that ends the run.
"""

# ruff: noqa: ANN401  values of any type cross the border

import builtins
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mlrl_envs.sandbox.judge.faults import (
    CandidateError,
    CandidateGoneError,
    LoadFailedError,
    VerdictError,
    show,
)
from mlrl_envs.sandbox.judge.remote import Remote, RemoteIterator, handle_of, remote_class
from mlrl_envs.sandbox.wire import frames, tags
from mlrl_envs.sandbox.wire.codec import Codec, Wire, WireError

__all__ = ["Border", "describe"]

MAX_REPLY = 8 << 20  # bytes
MAX_CALLBACKS = 100_000
REPLY_KINDS = frozenset({"value", "stop", "raise", "callback", "input"})


class Border:
    """Connection to one candidate.

    Args:
        link: Descriptor of the socket to the candidate.
        dunders: Operators that tests may use on instances that they create.

    Attributes:
        gone: Why the candidate was given up: "died", "protocol_violation", or "" if it was not.
        forbidden: The forbidden exception that the candidate raised in this test, or "".
        memory_error: Whether the candidate ever raised `MemoryError`.
        raised: The exception that the candidate raised last, as rebuilt here.
        last: The last value that the candidate returned, for error texts.
    """

    def __init__(self, link: int, dunders: Sequence[str] = ()) -> None:
        self._link = link
        self._codec = Codec(self._export, self._resolve)
        self._remotes: dict[int, Any] = {}
        self._exported: list[Callable[..., Any]] = []
        self._callbacks = 0
        self._instance_class = remote_class(dunders)
        self._classes: set[int] = set()
        self.gone = ""
        self.forbidden = ""
        self.memory_error = False
        self.raised: BaseException | None = None
        self.last: tuple[Any, ...] = ()

    def load(self, source: str, entry_points: list[str]) -> list[Any]:
        """Send the source to the candidate and return its entry points.

        Raises:
            LoadFailedError: If the source raises, or does not define an entry point.
            CandidateGoneError: If the candidate dies or breaks the protocol.
        """
        try:
            found = self._ask("load", 0, [], [source, entry_points])
            if len(found) != len(entry_points):
                self.lose("protocol_violation")
            self._classes = {handle_of(one) for one in found if issubclass(type(one), Remote)}
            return found
        except CandidateGoneError:
            raise
        except BaseException as error:  # noqa: BLE001  anything the source raises
            raise LoadFailedError(describe(error, self)) from None

    def request(self, operation: str, target: int, values: list[Any], extra: object) -> Any:
        """Send one request and return the value of the reply, or raise what the candidate raised.

        Args:
            operation: Name of the operation, see `candidate/operations.py`.
            target: Handle of the object to operate on.
            values: Values that are encoded for the candidate.
            extra: JSON value that the operation takes, such as an attribute name.
        """
        answer = self._ask(operation, target, values, extra)
        if len(answer) != 1:
            self.lose("protocol_violation")
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
            self.lose("died")

    def _receive(self) -> tuple[str, list[Any], Any]:
        frame = self._receive_frame()
        try:
            kind, changes, values, output, extra = json.loads(frame)
            decoded = self._codec.unpack(changes, values)
            if kind not in REPLY_KINDS or not isinstance(output, str):
                raise WireError("not a reply")
        except (WireError, ValueError, TypeError, RecursionError):
            self.lose("protocol_violation")
        if output:
            sys.stdout.write(output)
        return kind, decoded, extra

    def _receive_frame(self) -> bytes:
        frame = None
        try:
            frame = frames.receive(self._link, MAX_REPLY)
        except frames.FrameError:
            self.lose("protocol_violation")
        except OSError:
            pass
        return self.lose("died") if frame is None else frame

    def lose(self, why: str) -> NoReturn:
        """Give the candidate up: no further request is sent to it."""
        self.gone = self.gone or why
        raise CandidateGoneError(self.gone)

    def _rebuild(self, values: list[Any], extra: Any) -> BaseException:
        """Return the exception that a reply describes, as an instance of a class of the judge."""
        try:
            base, name, text, known = extra
            if not base:
                self.forbidden = f"{name} raised"
                return CandidateError(str(name))
            self.memory_error = self.memory_error or base == "MemoryError"
            kind = tags.EXCEPTIONS.get(base, Exception)
            own = self._remotes.get(known)
            if isinstance(own, type) and issubclass(own, Exception):
                kind = own
        except (TypeError, ValueError):
            self.lose("protocol_violation")
        self.raised = _instance(kind, values, f"{text}")
        return self.raised

    def _answer(self, kind: str, values: list[Any], extra: Any) -> None:
        """Run a callback of the candidate: a function that it was passed, or `input`."""
        self._callbacks += 1
        if self._callbacks > MAX_CALLBACKS:
            self.lose("protocol_violation")
        try:
            if kind == "input":
                result = builtins.input(*values)
            else:
                number, names = extra
                split = len(values) - len(names)
                keywords = dict(zip(names, values[split:], strict=True))
                result = self._exported[number](*values[:split], **keywords)
        except Exception as error:  # noqa: BLE001  raised in the candidate, at the call
            self._send("fault", 0, [error], None)
        else:
            self._send("answer", 0, [result], None)

    def _export(self, value: Any) -> Wire:
        if issubclass(type(value), Remote):
            return {"h": handle_of(value)}
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
            self._remotes[int(number)] = self._make_remote(int(number), str(label), str(nature))
        return self._remotes[number]

    def _make_remote(self, number: int, label: str, nature: str) -> Any:
        if nature.startswith("E"):
            return type(label, (tags.EXCEPTIONS.get(nature[1:], Exception),), {})
        return (RemoteIterator if nature == "I" else Remote)(self, number, label)

    def allow_operators(self, maker: int, result: Any) -> None:
        """Allow the tests' operators on the result of a call if it is a new instance.

        Args:
            maker: Handle of the object that was called.
            result: What the call returned.
        """
        if maker in self._classes and type(result) is Remote:
            object.__setattr__(result, "__class__", self._instance_class)


def _instance(kind: type[Exception], values: list[Any], text: str) -> Exception:
    try:
        return kind(*values)
    except Exception:  # noqa: BLE001  some classes require exact arguments: UnicodeDecodeError
        try:
            return kind(text)
        except Exception:  # noqa: BLE001
            return Exception(text)


def describe(error: BaseException, border: Border) -> str:
    """Return one short line on what went wrong in the candidate."""
    if border.gone:
        return "the program " + {"died": "died"}.get(border.gone, "broke the protocol")
    if border.forbidden:
        return border.forbidden
    if isinstance(error, VerdictError):
        return show(error, str)
    if isinstance(error, AssertionError) and error is not border.raised:
        # The message of the assertion itself would reveal the expected value.
        return "false" + (f"; the last value was {show(border.last[0])}" if border.last else "")
    text = show(error, str)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
