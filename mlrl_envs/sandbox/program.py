"""Input and output types of the sandbox: programs, limits, test records, outcomes.

Mistakes of the caller (a limit that is not positive, tests that do not parse, an unknown style)
raise an error when the object is created, so a batch contains only programs that can be run.
"""

import ast
import keyword
import math
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Literal, get_args

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.parsing.syntax import parse_module

__all__ = ["Assurance", "Limits", "Outcome", "Program", "Status", "Style", "TestRecord", "Tier"]

Style = Literal["check", "asserts", "unittest"]
Tier = Literal["A", "B", "C", "D"]
Assurance = Literal["split", "shared"]
Status = Literal[
    "passed",
    "failed",
    "load_error",
    "timeout",
    "cpu_limit",
    "memory",
    "died",
    "protocol_violation",
    "hostile",
]
OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        *("getitem", "setitem", "delitem", "len", "iter", "contains", "reversed", "str", "repr"),
        *("eq", "ne", "lt", "le", "gt", "ge", "bool", "int", "float", "abs", "neg", "add", "radd"),
        *("sub", "rsub", "mul", "rmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"),
        *("matmul", "enter", "exit", "format"),
    )
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one program; every value must be positive and finite.

    `wall_seconds`, `load_seconds` and `test_seconds` count the time in which the program or its
    tests run or sleep, which is wall time on an idle machine. Time in which they wait for a
    processor does not count.

    Attributes:
        wall_seconds: Time of the whole run, from loading to the last test.
        load_seconds: Time for compiling and executing the candidate's source.
        test_seconds: Time of one assertion or one test method.
        cpu_seconds: Processor time of the candidate, rounded up to whole seconds.
        memory_mib: Address space of the candidate in MiB, in addition to the interpreter's own.
        output_kib: Size of the standard output that is kept, in KiB; the rest is dropped.
        max_stretch: Largest factor, at least 1, by which waiting for a processor may extend
            `wall_seconds` on the clock. A run that takes longer is given up with `OverloadedError`.
    """

    wall_seconds: float = 10.0
    load_seconds: float = 2.0
    test_seconds: float = 3.0
    cpu_seconds: float = 8.0
    memory_mib: int = 256
    output_kib: int = 64
    max_stretch: float = 20.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value <= 0:
                raise InvalidArgumentError(
                    f"{item.name} must be a positive, finite number, got {value!r}"
                )
        if self.max_stretch < 1:
            raise InvalidArgumentError(f"max_stretch must be at least 1, got {self.max_stretch!r}")


@dataclass(frozen=True, slots=True)
class Program:
    """Untrusted source and the trusted tests for it.

    Attributes:
        source: Untrusted source; it runs only in the candidate process.
        tests: Trusted tests. They run in the judge process and are not visible to the candidate,
            except with assurance `"shared"`.
        style: `"check"` defines `check(candidate)` (HumanEval); `"asserts"` is a script of
            assertions (MBPP); `"unittest"` defines `TestCase` classes (ClassEval).
        entry_points: The names that the tests take from the source; `check` gets the first one.
        helpers: Trusted code that the tests may call; it runs in the judge before the tests.
        dunders: Operators that the tests use on instances that they create, because the reference
            class defines them, e.g. `("__getitem__", "__len__")`. In style `"unittest"`, operators
            that the tests apply directly to such instances are found automatically.
        assurance: `"split"` keeps tests and candidate in two processes. `"shared"` runs both in one
            confined process, for tests that pass live objects to the candidate; a program that
            searches its process for the tests can forge this verdict.
        limits: Limits of this program; None for the limits of the sandbox that runs it.
    """

    source: str
    tests: str
    style: Style
    entry_points: tuple[str, ...]
    helpers: str = ""
    dunders: tuple[str, ...] = ()
    assurance: Assurance = "split"
    limits: Limits | None = None

    def __post_init__(self) -> None:
        for name in ("entry_points", "dunders"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if problem := _problem(self):
            raise problem


@dataclass(frozen=True, slots=True)
class TestRecord:
    """One assertion (each time it ran) or one test method.

    Attributes:
        name: The assertion's own source expression, or `"Class.method"`.
        passed: Whether the test passed.
        error: Empty if it passed, else a short, deterministic text about the candidate's behaviour.
    """

    __test__ = False  # pytest must not take this for a test class

    name: str
    passed: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on one program.

    Attributes:
        status: How the run ended; `"passed"` only if every test ran and passed.
        passed: Number of tests that passed.
        total: Number of tests; where possible it is determined before the run.
        tests: One record per test in the order in which they ran, then the tests not reached.
        stdout: Standard output of the candidate, decoded, limited in length, without control
            characters.
        assurance: `"shared"` if tests and candidate ran in one process, else `"split"`.
        seconds: Wall time of the run.
        cpu_seconds: Processor time of the candidate.
        memory_mib: Peak resident size of the candidate in MiB.
        error: Why the source did not load, or how the run ended; empty if there was no error.
        waited_seconds: Time in which the run waited for a processor; measured only in runs that
            take longer than 0.1 s, and 0 if the system does not count it.
    """

    status: Status
    passed: int
    total: int
    tests: tuple[TestRecord, ...] = ()
    stdout: str = ""
    assurance: Assurance = "split"
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_mib: float = 0.0
    error: str = ""
    waited_seconds: float = 0.0


def _problem(program: Program) -> InvalidArgumentError | None:
    """Return the error for an invalid program, or None."""
    for kind, value, known in (
        ("style", program.style, get_args(Style)),
        ("assurance", program.assurance, get_args(Assurance)),
        *(("operator", name, OPERATORS) for name in program.dunders),
    ):
        if value not in known:
            return unknown_name(kind, value, known)
    text = _name_problem(program.entry_points) or _text_problem(program)
    return InvalidArgumentError(text) if text else None


def _name_problem(entry_points: tuple[str, ...]) -> str:
    if not entry_points:
        return "entry_points must name at least one function or class"
    for name in entry_points:
        if not name.isidentifier() or keyword.iskeyword(name):
            return f"entry point {name!r} is not a Python name"
    return ""


def _text_problem(program: Program) -> str:
    source: object = program.source
    if not isinstance(source, str):
        return f"source must be a str, got {type(source).__name__}"
    limits: object = program.limits
    if not isinstance(limits, Limits | None):
        return f"limits must be Limits or None, got {type(limits).__name__}"
    for label, text in (("tests", program.tests), ("helpers", program.helpers)):
        if problem := _syntax_problem(text):
            return f"{label} do not parse: {problem}"
    if program.assurance == "shared" and program.style != "unittest":
        return f"assurance 'shared' needs style 'unittest', got {program.style!r}"
    return _style_problem(program.tests, program.style)


@lru_cache(maxsize=1024)
def _syntax_problem(text: str) -> str:
    try:
        parse_module(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@lru_cache(maxsize=1024)
def _style_problem(tests: str, style: Style) -> str:
    tree = parse_module(tests)
    if style == "check" and not any(
        isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body
    ):
        return "style 'check' needs tests that define check(candidate)"
    if style == "unittest" and not any(isinstance(node, ast.ClassDef) for node in tree.body):
        return "style 'unittest' needs tests that define a TestCase class"
    return ""
