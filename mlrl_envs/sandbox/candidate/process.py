"""Server in the candidate process: loads the untrusted source and performs the judge's requests.

The code below shares its process with the untrusted program, which may modify it, so the judge
trusts none of its replies. The process holds the source and the arguments of each call; it never
receives the tests or the expected values.

Protocol: each frame is a JSON list. A request is `[operation, target, changes, values, dropped,
extra]`, a reply `[kind, changes, values, output, extra]`; `changes`, `values` and `dropped` are
those of `wire/codec.py`. While a request is open, the candidate may send `callback` or `input`
replies, which the judge answers with an `answer` or `fault` message.
"""

# ruff: noqa: ANN401  values of any type cross the border

import builtins
import io
import json
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from mlrl_envs.sandbox.candidate.operations import OPERATIONS
from mlrl_envs.sandbox.candidate.shared_tests import SharedTests
from mlrl_envs.sandbox.wire import frames, tags
from mlrl_envs.sandbox.wire.codec import Codec, Wire, WireError

__all__ = ["EXTRA_DEPTH", "Candidate", "Output", "run_candidate"]

MAX_REQUEST = 64 << 20  # bytes
MAX_REPLY = 8 << 20  # bytes; the judge refuses longer replies
MAX_TEXT = 300
EXTRA_DEPTH = 20  # stack frames of the server, added to the recursion limit of the program
Message: TypeAlias = list[Any]


def run_candidate(link: int, output_bytes: int) -> None:
    """Serve requests until the judge closes the connection.

    Args:
        link: Descriptor of the socket to the judge.
        output_bytes: Characters of standard output that are kept.
    """
    sys.setrecursionlimit(sys.getrecursionlimit() + EXTRA_DEPTH)
    candidate = Candidate(link, Output())
    candidate.take_over()
    candidate.run(output_bytes)


class HungUpError(BaseException):
    """The judge closed the connection."""


class Output(io.TextIOWrapper):
    """Standard output of the program, limited in length.

    Text goes to descriptor 1, which the supervisor reads, and into the next reply to the judge.

    Attributes:
        left: Number of characters that will still be kept.
    """

    def __init__(self) -> None:
        super().__init__(io.FileIO(1, "w", closefd=False), "utf-8", "backslashreplace", "\n")
        self.left = 0
        self._pending: list[str] = []

    def write(self, text: str) -> int:
        """Keep text up to the limit; the rest is dropped silently."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.left > 0:
            kept = text[: self.left]
            self.left -= len(kept)
            self._pending.append(kept)
            self.buffer.write(kept.encode("utf-8", "backslashreplace"))
        return len(text)

    def take(self) -> str:
        """Return the text written since the last call."""
        if not self._pending:
            return ""
        text = "".join(self._pending)
        self._pending.clear()
        return text


class JudgeCall:
    """Proxy for a callable of the judge; it can only be called."""

    __slots__ = ("_call", "_number")

    def __init__(self, call: Callable[..., Any], number: int) -> None:
        self._call = call
        self._number = number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self._number, args, kwargs)


class Candidate:
    """Serves the judge's requests.

    Args:
        link: Descriptor of the socket to the judge.
        output: Standard output of the program.
    """

    def __init__(self, link: int, output: Output) -> None:
        self._link = link
        self._output = output
        self._codec = Codec(self._export, self._resolve)
        self._handles: list[Any] = []
        self._handle_of: dict[int, int] = {}
        self._found: dict[str, Any] = {}
        self._tests: SharedTests | None = None

    def take_over(self) -> None:
        """Replace `sys.stdout` and `input` of this process."""
        sys.stdout = self._output
        builtins.input = self.input

    def run(self, output_bytes: int) -> None:
        """Serve requests until the judge closes the connection.

        Args:
            output_bytes: Characters of standard output that are kept.
        """
        self._output.left = output_bytes
        try:  # noqa: SIM105  `suppress` would touch more memory pages, which must be copied
            self.serve()
        except HungUpError:
            pass

    def serve(self) -> Any:
        """Perform requests until the answer to a callback arrives, and return that answer.

        Raises:
            HungUpError: If the judge closed the connection.
        """
        while True:
            frame = frames.receive(self._link, MAX_REQUEST)
            if frame is None:
                raise HungUpError
            operation, target, changes, values, dropped, extra = json.loads(frame)
            self._codec.forget(dropped)
            if operation == "answer":
                return self._codec.unpack(changes, values)[0]
            if operation == "fault":
                raise self._codec.unpack(changes, values)[0]
            self._reply(*self._perform(operation, target, changes, values, extra))

    def input(self, prompt: object = "", /) -> str:
        """Replacement of `input`: asks the judge, whose `input` the tests may have patched."""
        self._reply("input", [str(prompt)], None)
        return str(self.serve())

    def _perform(
        self, operation: str, target: int, changes: Wire, values: Wire, extra: Any
    ) -> tuple[str, list[Any], Any]:
        try:
            if operation == "load":
                return "value", self._load(*extra), None
            if operation == "share":
                helpers, tests = extra
                self._tests = SharedTests(helpers, tests, self._found)
                return "value", [None], None
            if operation == "share_run" and self._tests:
                return "value", [self._tests.run(*extra)], None
            arguments = self._codec.unpack(changes, values)
            return OPERATIONS[operation](self._handles[target], arguments, extra)
        except BaseException as error:  # noqa: BLE001  any exception becomes a reply
            return self._describe(error)

    def _load(self, source: str, entry_points: list[str]) -> list[Any]:
        module = types.ModuleType("solution")
        sys.modules["solution"] = module
        exec(compile(source, "<solution>", "exec", dont_inherit=True), module.__dict__)  # noqa: S102
        for name in entry_points:
            if name not in module.__dict__:
                raise NameError(f"the source defines no {name!r}")
            self._found[name] = module.__dict__[name]
        return list(self._found.values())

    def _describe(self, error: BaseException) -> tuple[str, list[Any], Any]:
        kind = type(error)
        known = next(
            (self._handle_of[id(b)] for b in type.mro(kind) if id(b) in self._handle_of), None
        )
        try:
            text = str(error)[:MAX_TEXT]
        except BaseException:  # noqa: BLE001  its `__str__` may raise anything
            text = ""
        name = str(type.__getattribute__(kind, "__name__"))[:MAX_TEXT]
        return (
            "raise",
            list(tags.exception_args(error)),
            [tags.exception_name(kind), name, text, known],
        )

    def _reply(self, kind: str, values: list[Any], extra: Any) -> None:
        try:
            changes, packed = self._codec.pack(values)
        except WireError as error:
            changes, packed = [], []
            if kind != "raise":
                kind, extra = "raise", ["ValueError", "WireError", str(error), None]
        message: Message = [kind, changes, packed, self._output.take(), extra]
        frame = json.dumps(message).encode()
        if len(frame) > MAX_REPLY:
            message[:3] = "raise", [], []
            message[4] = ["ValueError", "WireError", "a value too large to cross", None]
            frame = json.dumps(message).encode()
        frames.send(self._link, frame)
        self._output.buffer.flush()

    def _call_back(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._reply("callback", [*args, *kwargs.values()], [number, list(kwargs)])
        return self.serve()

    def _export(self, value: Any) -> Wire:
        kind = type(value)
        if kind is JudgeCall:
            return {"j": value._number}  # noqa: SLF001  same module
        if isinstance(value, type) and value in tags.TYPE_NAMES:
            return {"T": tags.TYPE_NAMES[value]}
        number = self._handle_of.get(id(value))
        if number is None:
            number = self._handle_of[id(value)] = len(self._handles)
            self._handles.append(value)
        return {"h": [number, *_nature(value)]}

    def _resolve(self, tag: str, payload: Any) -> Any:
        if tag == "j":
            return JudgeCall(self._call_back, payload)
        return self._handles[payload]


def _nature(value: Any) -> tuple[str, str]:
    """Return a label, and the kind of proxy that the judge builds.

    The kind is "" for an object, "I" for an iterator, and "E" with the name of its builtin base for
    an exception class.
    """
    if isinstance(value, type):
        name = value.__name__[:MAX_TEXT]
        return name, "E" + tags.exception_name(value) if issubclass(value, Exception) else ""
    name = getattr(value, "__name__", None) or type(value).__name__
    return str(name)[:MAX_TEXT], "I" if isinstance(value, Iterator) else ""
