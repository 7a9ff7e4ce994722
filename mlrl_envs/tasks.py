"""What the rows of each family hold, once a data set has been read: frozen and picklable."""

from dataclasses import dataclass

from mlrl_envs.types import Task

__all__ = ["CodeTask", "StoryTask"]


@dataclass(frozen=True, slots=True)
class StoryTask(Task):
    """A creative prompt.

    Attributes:
        prompt: What to write about, one line.
    """

    prompt: str


@dataclass(frozen=True, slots=True)
class CodeTask(Task):
    """A function to write, and how it is tested.

    Attributes:
        prompt: The problem as agents read it: imports, helpers, signature, docstring.
        entry_point: Name of the function asked for.
        prelude: The problem's own imports and helper functions, part of every program.
        helper_names: Names that `prelude` binds; no answer may rebind them.
        public_tests: Plain assert statements that agents may see, each passed by the reference.
        hidden_tests: Trusted script of assertions, the data set's own, that agents never see;
            those among the public tests apart.
        num_hidden_tests: Assertions that `hidden_tests` runs for a right solution.
        solution: A right definition of the entry point, or None where the data has none.
        setup: Trusted code that the tests lean on; it runs before them, when the program is loaded.
        shared_names: Names of `prelude` that tests take from the program, because what they make
            of them is handed to the entry point: classes.
    """

    prompt: str
    entry_point: str
    prelude: str
    helper_names: tuple[str, ...]
    public_tests: tuple[str, ...]
    hidden_tests: str
    num_hidden_tests: int
    solution: str | None = None
    setup: str = ""
    shared_names: tuple[str, ...] = ()
