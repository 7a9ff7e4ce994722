"""What the rows of each family hold, once a data set has been read: frozen and picklable."""

from dataclasses import dataclass
from typing import Literal

from mlrl_envs.types import AgentID, Task

__all__ = [
    "ClassTask",
    "CodeTask",
    "DebateTask",
    "MathTask",
    "Method",
    "StoryTask",
    "ToolEvidence",
    "ToolTask",
    "Work",
    "WritingTask",
]

Work = Literal["nothing", "constant", "real"]


@dataclass(frozen=True, slots=True)
class StoryTask(Task):
    """A creative prompt.

    Attributes:
        prompt: What to write about, one line.
    """

    prompt: str


@dataclass(frozen=True, slots=True)
class WritingTask(Task):
    """A text to retell.

    Attributes:
        source: The text, as agents read it: a post, an abstract.
    """

    source: str


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
        test_seconds: What one assertion may take; None for the sandbox's own limit.
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
    test_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class MathTask(Task):
    """A problem with one number for an answer.

    Attributes:
        question: The problem as agents read it.
        answer: The right number, written as `mlrl_envs.parsing.numbers.format_number` writes it.
        solution: A right way to it, a step a line.
    """

    question: str
    answer: str
    solution: str


@dataclass(frozen=True, slots=True)
class DebateTask(Task):
    """A proposition to argue about.

    Attributes:
        proposition: One sentence that can be affirmed and denied.
        pro_points: What a good case for it touches, a phrase each; only the judge reads them.
        con_points: What a good case against it touches, likewise.
    """

    proposition: str
    pro_points: tuple[str, ...]
    con_points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Method:
    """A method that is left to be written.

    Attributes:
        name: Its name; `"size.setter"` for a property's other accessors.
        size: Characters of its reference, at least 1.
        num_parameters: Parameters of its signature, `self` included.
        work: What its reference does: nothing (the empty body is right), the same thing whatever
            it is given, or real work.
        reference: A right definition.
    """

    name: str
    size: int
    num_parameters: int
    work: Work
    reference: str


@dataclass(frozen=True, slots=True)
class ClassTask(Task):
    """A class to complete, and how it is tested.

    Attributes:
        skeleton: The class as agents read it, with its imports: some methods have no body yet.
        class_name: The class; tests take nothing else from the program.
        methods: Those left to be written, in the order of the class.
        public_tests: Methods whose docstring examples are tested, one test each; agents see them.
        tests: Trusted `unittest` classes: the public tests first, in that order, then the hidden.
        num_hidden_tests: Test methods that agents never see.
        helpers: Trusted imports that tests lean on.
        dunders: Operators that tests use on instances, because the reference class defines them.
        shared: Whether tests and program must share a process.
        patient: Whether a right program needs seconds for one test.
    """

    skeleton: str
    class_name: str
    methods: tuple[Method, ...]
    public_tests: tuple[str, ...]
    tests: str
    num_hidden_tests: int
    helpers: str = ""
    dunders: tuple[str, ...] = ()
    shared: bool = False
    patient: bool = False


@dataclass(frozen=True, slots=True)
class ToolEvidence:
    """One tool call that a task cannot be solved without, known by what it shows.

    Attributes:
        agent: Who makes it in the reference.
        tool: Which tool.
        parameters: Its parameters in the reference, as JSON.
        needs: Numbers or names that the call's parameters must hold.
        shows: What its result must show: a document's id, a number; empty where any will do.
        twin: What it must show in a twin of the task whose files differ; empty where it has none.
    """

    agent: AgentID
    tool: str
    parameters: str
    needs: tuple[str, ...]
    shows: str
    twin: str = ""


@dataclass(frozen=True, slots=True)
class ToolTask(Task):
    """A question whose answer takes tools, and what each agent alone knows.

    Attributes:
        question: What the team is asked.
        briefs: For each agent, what only it is told.
        files: Path and content of every file in the team's directory.
        twin_files: The same files with other content, under which the answer is another.
        evidence: The calls that it takes.
        answer: The answer: a number, or a name.
    """

    question: str
    briefs: tuple[tuple[AgentID, str], ...]
    files: tuple[tuple[str, str], ...]
    twin_files: tuple[tuple[str, str], ...]
    evidence: tuple[ToolEvidence, ...]
    answer: str

    @property
    def required_tools(self) -> tuple[str, ...]:
        """The tools that it takes, each once."""
        return tuple(dict.fromkeys(item.tool for item in self.evidence))
