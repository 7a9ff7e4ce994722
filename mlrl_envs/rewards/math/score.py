"""Rewards of math problems with one number as the answer: `paper` and `grounded`.

Paper: 1 [correct] - 0.3 [no answer] + 0.2 [shows steps, if required], averaged over the agents; for
voting solvers [correct] is that of the vote.

Grounded, in [0, 1]: 0.6 answer + 0.4 check for a solver and a verifier, 0.6 vote + 0.4 answers for
voting solvers. Only right numbers are paid; the format is not. The right number of an agent is
worth

- 1/k if it is the k-th different number that this agent gives in the episode, so that trying
  numbers does not pay;
- half if the agent first gives it after a teammate showed it (broadcast) and backs it with its own
  calculations, and nothing without them;
- 0.4 + 0.6 [its working leads to it], if steps are required.

See `mlrl_envs.rewards.turn_gain` for several turns. The vote is the number that most solvers give;
of equal counts that of the first agent wins, and solvers without a number do not vote.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean

from mlrl_envs.parsing.numbers import NumericAnswer, find_answer, read_number, same_answer
from mlrl_envs.rewards.math.equations import (
    equations,
    is_backed,
    numbers_in,
    shows_steps,
    without_numbers,
)
from mlrl_envs.rewards.prose import copied_share
from mlrl_envs.rewards.turn_gain import pay_gain
from mlrl_envs.tasks import MathTask
from mlrl_envs.types import AgentID, Attempt, Json, Score, Turn

__all__ = ["MathRules", "score_grounded", "score_paper", "vote"]

FIRST, SECOND = 0.6, 0.4
BARE = 0.4  # worth of a number without the working that is asked for
UNPARSED, STEPS = -0.3, 0.2
ADOPTED = 0.5
COPIED = 0.5  # share of four-word runs from which a text counts as a copy
MAX_SHOWN_STEPS = 3


@dataclass(frozen=True)
class MathRules:
    """Options that the rewards depend on.

    Attributes:
        votes: Whether the agents are voting solvers; otherwise a solver and a verifier.
        require_steps: Whether steps are asked for and paid.
        is_shared: Whether agents read earlier answers of teammates.
    """

    votes: bool = False
    require_steps: bool = False
    is_shared: bool = False


def score_paper(attempt: Attempt[MathTask], rules: MathRules) -> Score:
    """Score an attempt by the published formula."""
    found = {agent: find_answer(text) for agent, text in attempt.actions.items()}
    wanted = _wanted(attempt.task)
    right = [same_answer(answer, wanted) for answer in found.values()]
    voted = same_answer(vote(list(found.values())), wanted)
    parts = {
        "correct": float(voted) if rules.votes else fmean(right),
        "unparsed": 0.0 + UNPARSED * fmean(answer is None for answer in found.values()),
    }
    if rules.require_steps:
        parts["steps"] = STEPS * fmean(shows_steps(text) for text in attempt.actions.values())
    components = {agent: dict(parts) for agent in attempt.actions}
    return _score(attempt, found, components, rules)


def score_grounded(attempt: Attempt[MathTask], rules: MathRules) -> Score:
    """Score an attempt by the grounded formula."""
    found = {agent: _own_answer(attempt.task, attempt.actions[agent]) for agent in attempt.actions}
    worth = {agent: _worth(attempt, agent, found[agent], rules) for agent in found}
    if rules.votes:
        right = [value for value in worth.values() if value > 0.0]
        voted = same_answer(vote(list(found.values())), _wanted(attempt.task))
        parts = {
            "vote": FIRST * fmean(right) if voted and right else 0.0,
            "answers": SECOND * fmean(worth.values()),
        }
    else:
        first, second = worth.values()
        parts = {"answer": FIRST * first, "check": SECOND * second}
    components = {agent: pay_gain(parts, attempt.turns, agent) for agent in found}
    return _score(attempt, found, components, rules)


def vote(answers: Sequence[NumericAnswer | None]) -> NumericAnswer | None:
    """Return the most frequent answer, the earliest of equal counts; None without answers."""
    given = [answer for answer in answers if answer is not None]
    counts = [sum(same_answer(other, answer.value) for other in given) for answer in given]
    return given[counts.index(max(counts))] if given else None


def _wanted(task: MathTask) -> Fraction:
    wanted = read_number(task.answer)
    assert wanted is not None  # noqa: S101  guaranteed by the loaders
    return wanted


def _own_answer(task: MathTask, text: str) -> NumericAnswer | None:
    """Return the answer of a text; without a mark, a number of the question is none."""
    answer = find_answer(text)
    if answer is None or answer.marked or answer.value not in numbers_in(task.question):
        return answer
    if _wanted(task) not in numbers_in(task.question):  # text about the answer, such as a check
        return find_answer(without_numbers(text, task.question))
    return None if copied_share(text, task.question) >= COPIED else answer


def _worth(
    attempt: Attempt[MathTask], agent: AgentID, answer: NumericAnswer | None, rules: MathRules
) -> float:
    task, text = attempt.task, attempt.actions[agent]
    if answer is None or not same_answer(answer, _wanted(task)):
        return 0.0
    own = [_own_answer(task, turn.actions[agent]) for turn in attempt.turns]
    others = {before.value for before in own if before and before.value != answer.value}
    worth = 1.0 / (1 + len(others))
    backed = is_backed(text, _wanted(task), task.question)
    is_new = not any(same_answer(before, answer.value) for before in own)
    if rules.is_shared and is_new and _was_shown(attempt, agent, answer):
        worth *= ADOPTED * (backed and not _is_copy(text, attempt.turns, agent))
    return worth * (1.0 if backed else BARE) if rules.require_steps else worth


def _was_shown(attempt: Attempt[MathTask], agent: AgentID, answer: NumericAnswer) -> bool:
    return any(
        same_answer(_own_answer(attempt.task, text), answer.value)
        for turn in attempt.turns
        for other, text in turn.actions.items()
        if other != agent
    )


def _is_copy(text: str, turns: Sequence[Turn], agent: AgentID) -> bool:
    return any(
        copied_share(text, shown) >= COPIED
        for turn in turns
        for other, shown in turn.actions.items()
        if other != agent
    )


def _score(
    attempt: Attempt[MathTask],
    found: Mapping[AgentID, NumericAnswer | None],
    components: Mapping[AgentID, Mapping[str, float]],
    rules: MathRules,
) -> Score:
    wanted = _wanted(attempt.task)
    right = {agent: same_answer(answer, wanted) for agent, answer in found.items()}
    voted = same_answer(vote(list(found.values())), wanted)
    team = _vote_check(found, voted=voted) if rules.votes else _agreement_check(found)
    diagnostics: dict[AgentID, dict[str, Json]] = {
        agent: {
            "checks": [
                _form_check(answer),
                _result_check(attempt.actions[agent], answer, is_right=right[agent]),
                team,
            ]
        }
        for agent, answer in found.items()
    }
    return Score(components, voted if rules.votes else all(right.values()), diagnostics)


def _form_check(answer: NumericAnswer | None) -> Json:
    if answer is not None:
        return _check("your answer", "FOUND", passed=True)
    advice = "end with one line that reads Answer: and then exactly one number."
    return _check("your answer", "MISSING", advice, passed=False)


def _result_check(text: str, answer: NumericAnswer | None, *, is_right: bool) -> Json:
    if is_right or answer is None:
        return _check("your result", "right" if is_right else "none", passed=is_right)
    slips = [equation.text for equation in equations(text) if not equation.is_true]
    advice = [f"this step does not add up: {slip}" for slip in slips[:MAX_SHOWN_STEPS]]
    return _check("your result", "wrong", *(advice or ["work it out again."]), passed=False)


def _agreement_check(found: Mapping[AgentID, NumericAnswer | None]) -> Json:
    first, second = found.values()
    agree = second is not None and same_answer(first, second.value)
    return _check("solver and verifier", "agree" if agree else "differ", passed=agree)


def _vote_check(found: Mapping[AgentID, NumericAnswer | None], *, voted: bool) -> Json:
    if not any(found.values()):
        return _check("vote", "none", passed=False)
    return _check("vote", "right" if voted else "wrong", passed=voted)


def _check(name: str, status: str, *details: str, passed: bool) -> Json:
    return {"name": name, "passed": passed, "status": status, "details": list(details)}
