"""The contribution of one coder to a class, and the part of it that is the coder's own work."""

import ast
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from mlrl_envs.parsing.text import FunctionNode, bound_names
from mlrl_envs.programs.overriding import overridden
from mlrl_envs.types import AgentID

__all__ = ["ClassAnswer", "is_import", "own_work"]


@dataclass(frozen=True)
class ClassAnswer:
    """The contribution of one coder.

    Attributes:
        own: The methods that the coder was asked for.
        methods: The delivered methods, by name.
        stubs: Methods whose body does less than the reference.
        strays: Methods of the task that belong to others and have a body; they are not used.
        signatures: The same without a body, as in a repeated skeleton.
        helpers: Helper methods, by name.
        beside: Statements for the module.
        dropped: Short labels of all other statements.
        errors: Parse errors.
        overridden: Methods of others that it may set at run time; they are stubs of their authors.
    """

    own: tuple[str, ...]
    methods: Mapping[str, FunctionNode]
    stubs: Mapping[str, FunctionNode]
    strays: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    helpers: Mapping[str, FunctionNode] = field(default_factory=dict)
    beside: tuple[ast.stmt, ...] = ()
    dropped: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    overridden: tuple[str, ...] = ()


def own_work(answers: Mapping[AgentID, ClassAnswer]) -> dict[AgentID, ClassAnswer]:
    """Return answers in which methods whose work another coder may do are stubs."""
    answers = _without_overridden(answers)
    return {agent: _without_borrowed(answer, answers) for agent, answer in answers.items()}


def _without_overridden(answers: Mapping[AgentID, ClassAnswer]) -> dict[AgentID, ClassAnswer]:
    """Return answers in which methods that another coder may set at run time are stubs.

    Otherwise one coder could do the work of another, whose methods are there for show.
    """
    names = {name for answer in answers.values() for name in answer.own}
    found = {
        agent: overridden(_statements(answer), names - set(answer.own))
        for agent, answer in answers.items()
    }
    lost = {name for replaced in found.values() for name in replaced}
    return {
        agent: replace(_with_stubs(answer, lost), overridden=tuple(sorted(found[agent])))
        for agent, answer in answers.items()
    }


def _without_borrowed(answer: ClassAnswer, answers: Mapping[AgentID, ClassAnswer]) -> ClassAnswer:
    """Return an answer in which methods that call helpers of other coders alone are stubs.

    Coders do not see each other, so only one that leaves its work to another makes such calls.
    """
    theirs = {name for other in answers.values() for name in _helper_names(other)}
    borrowed = theirs - _helper_names(answer)
    return replace(
        _with_stubs(answer, {k for k, node in answer.methods.items() if _calls(node, borrowed)}),
        helpers={k: node for k, node in answer.helpers.items() if not _calls(node, borrowed)},
        beside=tuple(node for node in answer.beside if not _calls(node, borrowed)),
    )


def _statements(answer: ClassAnswer) -> list[ast.stmt]:
    methods = {**answer.methods, **answer.stubs, **answer.helpers}
    return [*methods.values(), *answer.beside]


def _with_stubs(answer: ClassAnswer, names: Set[str]) -> ClassAnswer:
    methods = {name: node for name, node in answer.methods.items() if name not in names}
    stubs = {name: node for name, node in answer.methods.items() if name in names}
    return replace(answer, methods=methods, stubs={**answer.stubs, **stubs})


def _helper_names(answer: ClassAnswer) -> set[str]:
    defined = [node for node in answer.beside if not is_import(node)]
    return {*answer.helpers, *(name for node in defined for name in bound_names(node))}


def _calls(statement: ast.stmt, names: Set[str]) -> bool:
    called = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(getattr(f, "id", getattr(f, "attr", None)) in names for f in called)


def is_import(statement: ast.stmt) -> bool:
    """Return whether a statement is an import."""
    return isinstance(statement, ast.Import | ast.ImportFrom)
