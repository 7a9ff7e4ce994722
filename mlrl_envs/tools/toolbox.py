"""Definitions and JSON schemas of the tools, and batched execution of the calls of many messages.

Calculator and search run in this process and are bounded by construction. Python and the files run
in the sandbox, in one session for each team: one interpreter for each agent and a shared directory.
Rewards for calls are defined in `mlrl_envs.rewards.tools`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlrl_envs.parsing.text import printable, shorten
from mlrl_envs.tools.calculator import CalculatorError, calculate
from mlrl_envs.tools.calls import ToolCall
from mlrl_envs.tools.search import Index
from mlrl_envs.types import AgentID, Json, ProgramRunner

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Call, Reply

__all__ = [
    "TOOLS",
    "Request",
    "Result",
    "Tool",
    "arguments_of",
    "describe_tools",
    "in_workspace",
    "run_requests",
    "tool_schemas",
]

MAX_RESULT_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as described to agents.

    Attributes:
        parameters: Its parameters, all of which are required texts, with a description of each.
        description: One line.
        kind: The sandbox's name of the tool; empty for a tool that runs in this process.
    """

    parameters: Mapping[str, str]
    description: str
    kind: str = ""


_PATH = {"path": "Name of the file in the team's directory."}
TOOLS: dict[str, Tool] = {
    "calculator": Tool(
        {"expression": "The expression, such as sqrt(16) + 2^3."},
        "works out arithmetic: + - * / // % ^, sqrt, round, min, max and more.",
    ),
    "search": Tool(
        {"query": "Words to search for."}, "finds the three documents of the archive that fit best."
    ),
    "python": Tool(
        {"code": "Lines of Python."},
        "runs code in your own Python, which keeps its names; print what you need.",
        "python",
    ),
    "read_file": Tool(_PATH, "shows a file of the team's directory.", "read"),
    "write_file": Tool(
        {**_PATH, "content": "The whole text of the file."},
        "writes such a file; teammates can read it.",
        "write",
    ),
    "list_files": Tool({}, "lists the team's files.", "list"),
    "delete_file": Tool(_PATH, "deletes such a file.", "delete"),
}


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call.

    Attributes:
        status: `"ok"`; `"error"`, the tool failed; `"malformed"`, the call or its parameters are
            invalid; `"unknown"`, no such tool; `"refused"`, above the number of calls of a turn;
            otherwise how a session lost its interpreter, such as `"timeout"`.
        text: The text that the agent reads.
    """

    status: str
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """The calls of one joint action.

    Attributes:
        history: The earlier calls in the sandbox session of the team.
        calls: Agent and call, in the order of execution.
        index: The archive that is searched.
        seconds: Time limit of one call in seconds.
    """

    history: tuple["Call", ...]
    calls: tuple[tuple[AgentID, ToolCall], ...]
    index: Index
    seconds: float


def run_requests(requests: Sequence[Request], sandbox: ProgramRunner) -> list[list[Result]]:
    """Run the calls of many joint actions, those in sandbox sessions as one batch.

    Args:
        requests: The calls.
        sandbox: Runs Python and the file operations.

    Returns:
        The results of each request, in the order of its calls.

    Raises:
        InfraError: If the sandbox fails, or the library of the calculator is missing.
    """
    from mlrl_envs.sandbox import Script

    results: list[list[Result | None]] = [
        [_run_here(call, request.index) for _, call in request.calls] for request in requests
    ]
    waiting = [number for number, row in enumerate(results) if None in row]
    scripts = []
    for number in waiting:
        request = requests[number]
        pending = [
            in_workspace(agent, call)
            for (agent, call), result in zip(request.calls, results[number], strict=True)
            if result is None
        ]
        scripts.append(Script(request.history, tuple(pending), request.seconds))
    played = sandbox.play_many(scripts) if scripts else []
    for number, replies in zip(waiting, played, strict=True):
        rest = iter(replies)
        results[number] = [
            _read_reply(next(rest)) if result is None else result for result in results[number]
        ]
    return [[result for result in row if result is not None] for row in results]


def in_workspace(agent: AgentID, call: ToolCall) -> "Call":
    """Return a call in the format of the sandbox."""
    from mlrl_envs.sandbox import Call

    kind, arguments = TOOLS[call.name].kind, arguments_of(call)
    if kind == "python":
        return Call("python", agent, arguments["code"])
    return Call(kind, arguments.get("path", ""), arguments.get("content", ""))  # type: ignore[arg-type]


def arguments_of(call: ToolCall) -> dict[str, str]:
    """Return a call's arguments as texts; numbers are converted, other types left out."""
    return {
        name: str(value)
        for name, value in call.parameters.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }


def _run_here(call: ToolCall, index: Index) -> Result | None:
    """Return the result of a call, or None if it must run in the sandbox."""
    problem = _problem(call)
    if problem is not None:
        return problem
    if TOOLS[call.name].kind:
        return None
    arguments = arguments_of(call)
    if call.name == "search":
        return _search(arguments["query"], index)
    try:
        return Result("ok", calculate(arguments["expression"]))
    except CalculatorError as error:
        return Result("error", str(error))


def _problem(call: ToolCall) -> Result | None:
    if call.error:
        return Result("malformed", call.error)
    tool = TOOLS.get(call.name)
    if tool is None:
        name = printable(shorten(call.name, 40))
        return Result("unknown", f"no tool {name!r}; there are {', '.join(TOOLS)}")
    if arguments_of(call).keys() != set(tool.parameters) or len(call.parameters) != len(
        tool.parameters
    ):
        wanted = ", ".join(tool.parameters) or "nothing"
        return Result("malformed", f"{call.name} takes {wanted}")
    return None


def _search(query: str, index: Index) -> Result:
    found = index.search(query)
    if not found:
        return Result("error", "nothing found")
    return Result("ok", "\n".join(f"[{d.id}] {d.title}: {d.text}" for d in found))


def _read_reply(reply: "Reply") -> Result:
    text = shorten(printable(reply.text.rstrip("\n")), MAX_RESULT_CHARS)
    return Result(reply.status, text or "(no output)")


def describe_tools() -> str:
    """Return one line for each tool, for prompts."""
    return "\n".join(
        f"- {name}({', '.join(tool.parameters)}): {tool.description}"
        for name, tool in TOOLS.items()
    )


def tool_schemas() -> list[dict[str, Json]]:
    """Return the JSON schemas of the tools in the form of OpenAI's parameter `tools`.

    Chat templates and servers read this form. The order is that of `describe_tools`.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": tool.description,
                "parameters": {
                    "type": "object",
                    "properties": {
                        each: {"type": "string", "description": text}
                        for each, text in tool.parameters.items()
                    },
                    "required": list(tool.parameters),
                },
            },
        }
        for name, tool in TOOLS.items()
    ]
