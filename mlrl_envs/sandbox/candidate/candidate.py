"""The candidate's process: it holds the untrusted source and the arguments of each call.

Everything here runs beside code that may rewrite it; nothing here is trusted. It answers the
judge over one socket and knows neither the tests nor what they expect.
"""

# ruff: noqa: ANN401  values of any type cross the border

import builtins
import io
import json
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from mlrl_envs.sandbox.candidate.sharing import SharedTests
from mlrl_envs.sandbox.wire import frames, tags
from mlrl_envs.sandbox.wire.codec import Codec, Wire, WireError

__all__ = ["EXTRA_DEPTH", "Candidate", "Output", "run_candidate"]

FRAME_CAP = 64 << 20
REPLY_CAP = 8 << 20  # the judge refuses more
TEXT_CAP = 300
EXTRA_DEPTH = 20  # frames of ours below the candidate's, so that its recursion limit is the usual
Message: TypeAlias = list[Any]


def run_candidate(link: int, output_bytes: int) -> None:
    """Answer the judge until it hangs up."""
    sys.setrecursionlimit(sys.getrecursionlimit() + EXTRA_DEPTH)
    one = Candidate(link, Output())
    one.take_over()
    one.run(output_bytes)


class HungUpError(BaseException):
    """The judge is gone: there is nothing left to do."""


class Output(io.TextIOWrapper):
    """Standard output: kept up to a cap, on its descriptor and for the judge's next reply.

    Attributes:
        left: How many characters are still kept.
    """

    def __init__(self) -> None:
        super().__init__(io.FileIO(1, "w", closefd=False), "utf-8", "backslashreplace", "\n")
        self.left = 0
        self._pending: list[str] = []

    def write(self, text: str) -> int:
        """Keep text while there is room; the rest is dropped without a word."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.left > 0:
            kept = text[: self.left]
            self.left -= len(kept)
            self._pending.append(kept)
            self.buffer.write(kept.encode("utf-8", "backslashreplace"))
        return len(text)

    def take(self) -> str:
        """Return what was written since the last time."""
        if not self._pending:
            return ""
        text = "".join(self._pending)
        self._pending.clear()
        return text


class JudgeCall:
    """A callable that lives in the judge: it can be called, and nothing else."""

    __slots__ = ("_call", "_number")

    def __init__(self, call: Callable[..., Any], number: int) -> None:
        self._call = call
        self._number = number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self._number, args, kwargs)


class Candidate:
    """Serves loads, calls and attributes; calls back when given something callable."""

    def __init__(self, link: int, output: Output) -> None:
        self._link = link
        self._output = output
        self._codec = Codec(self._export, self._resolve)
        self._handles: list[Any] = []
        self._handle_of: dict[int, int] = {}
        self._found: dict[str, Any] = {}
        self._tests: SharedTests | None = None

    def take_over(self) -> None:
        """Stand in for this process's standard output and input."""
        sys.stdout = self._output
        builtins.input = self.input

    def run(self, output_bytes: int) -> None:
        """Answer the judge until it hangs up, and keep so much standard output."""
        self._output.left = output_bytes
        try:  # noqa: SIM105  `suppress` is more code, on pages that must be copied for it
            self.serve()
        except HungUpError:
            pass

    def serve(self) -> Any:
        """Answer requests until an answer to our own question, or the end, arrives."""
        while True:
            frame = frames.receive(self._link, FRAME_CAP)
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
        """Stand in for `input`: the tests may have patched theirs."""
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
        except BaseException as error:  # noqa: BLE001  whatever the candidate raises, is data
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
            text = str(error)[:TEXT_CAP]
        except BaseException:  # noqa: BLE001  its own __str__ may raise anything
            text = ""
        name = str(type.__getattribute__(kind, "__name__"))[:TEXT_CAP]
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
        if len(frame) > REPLY_CAP:
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
    """Return a label, and what the judge must build: an object, an iterator, an exception class."""
    if isinstance(value, type):
        name = value.__name__[:TEXT_CAP]
        return name, "E" + tags.exception_name(value) if issubclass(value, Exception) else ""
    name = getattr(value, "__name__", None) or type(value).__name__
    return str(name)[:TEXT_CAP], "I" if isinstance(value, Iterator) else ""


def _call(target: Any, values: list[Any], names: list[str]) -> tuple[str, list[Any], Any]:
    if not names:
        return "value", [target(*values)], None
    split = len(values) - len(names)
    keywords = dict(zip(names, values[split:], strict=True))
    return "value", [target(*values[:split], **keywords)], None


def _get(target: Any, _values: list[Any], name: str) -> tuple[str, list[Any], Any]:
    return "value", [getattr(target, name)], None


def _set(target: Any, values: list[Any], name: str) -> tuple[str, list[Any], Any]:
    setattr(target, name, values[0])
    return "value", [None], None


def _delete(target: Any, _values: list[Any], name: str) -> tuple[str, list[Any], Any]:
    delattr(target, name)
    return "value", [None], None


def _isinstance(target: Any, values: list[Any], _extra: Any) -> tuple[str, list[Any], Any]:
    return "value", [isinstance(values[0], target)], None


def _next(target: Any, _values: list[Any], _extra: Any) -> tuple[str, list[Any], Any]:
    try:
        return "value", [next(target)], None
    except StopIteration:
        return "stop", [], None


def _operator(target: Any, values: list[Any], name: str) -> tuple[str, list[Any], Any]:
    operate = BUILTIN_OPERATORS.get(name) or getattr(type(target), name)
    return "value", [operate(target, *values)], None


# Where Python itself falls back on another method if a class lacks this one.
BUILTIN_OPERATORS: dict[str, Callable[..., Any]] = {
    "__contains__": lambda target, item: item in target,
    "__iter__": iter,
    "__str__": str,
    "__repr__": repr,
    "__bool__": bool,
}


OPERATIONS: dict[str, Callable[[Any, list[Any], Any], tuple[str, list[Any], Any]]] = {
    "call": _call,
    "get": _get,
    "set": _set,
    "del": _delete,
    "isinstance": _isinstance,
    "next": _next,
    "operator": _operator,
}
