"""Both formulas on hand-made outcomes, and on the real data through the real sandbox."""

import pytest

import mlrl_envs
from mlrl_envs.rewards.coding.functions import score_attempts, score_grounded, score_paper
from mlrl_envs.sandbox import Outcome, TestRecord
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import Attempt

TASK = CodeTask(
    task_id="test/0",
    prompt='def f(x):\n    """f(1) == 2"""\n',
    entry_point="f",
    prelude="",
    helper_names=(),
    public_tests=("assert f(1) == 2",),
    hidden_tests="def check(candidate):\n    assert candidate(2) == 3\n\ncheck(f)",
    num_hidden_tests=4,
)
TEAM = {"aux": "aux", "main": "f"}
ALONE = {"main": "f"}

AUX = "def aux(x):\n    y = x + 0\n    return y"
VOID = "def aux(x):\n    pass"
USED = "def f(x):\n    return aux(x) + 1"
WRAPPED = "def f(x):\n    return aux(x)"
IGNORED = "def f(x):\n    aux(x)\n    return x + 1"
UNCALLED = "def f(x):\n    return x + 1"
NO_RETURN = "def f(x):\n    print(x)"
NONSENSE = "def f(x:\n    return"


class Scripted:
    """Answers each program with the next outcome: how many hidden assertions pass.

    Programs that return a constant pass none, unless `free` says how many.
    """

    def __init__(self, *passed, status=None, error="false", free=0):
        self.free = free
        self.passed = list(passed)
        self.status = status
        self.error = error
        self.programs = []

    def run_many(self, programs):
        if all("(*args, **kwargs)" in p.source and "aux" not in p.source for p in programs):
            return [self._outcome(program, self.free) for program in programs]
        self.programs += programs
        return [self._outcome(program, self.passed.pop(0)) for program in programs]

    def _outcome(self, program, passed):
        records = [TestRecord("f(1) == 2", passed > 0, "" if passed else "false")]
        records += [TestRecord("candidate(2) == 3", n < passed, self.error) for n in range(4)]
        total = sum(record.passed for record in records)
        status = self.status or ("passed" if total == len(records) else "failed")
        return Outcome(status, total, len(records), tuple(records))


def _score(score, aux, main, *passed, functions=TEAM, turns=(), status=None, error="false"):
    actions = {"aux": aux, "main": main}
    attempt = Attempt(TASK, turns, {agent: actions[agent] for agent in functions})
    sandbox = Scripted(*passed, status=status, error=error)
    (result,) = score([attempt], [functions], sandbox)
    return result, sandbox


@pytest.mark.parametrize(
    ("aux", "main", "passed", "reward"),
    [
        (AUX, USED, 4, 0.4 + 0.6 + 0.5 + 1.0 + 0.5 + 1.0),
        (AUX, USED, 2, 0.4 + 0.6 + 0.5 + 0.5 + 0.5 + 1.0),
        (AUX, USED, 0, 0.4 + 0.6 + 0.5),
        (AUX, WRAPPED, 4, 0.4 + 0.6 + 0.5 + 1.0 + 0.5),
        (AUX, IGNORED, 4, 0.4 + 0.6 + 0.5 + 1.0 + 0.5 + 1.0 - 0.5),
        (AUX, UNCALLED, 4, 0.4 + 0.6 + 0.5 + 1.0),
        (VOID, USED, 4, 0.6 + 0.5 + 1.0 + 0.5 + 1.0),
        ("", UNCALLED, 4, 0.6 + 0.5 + 1.0),
        ("", USED, 4, 0.6 + 0.5 + 1.0),
        ("```python\n```", UNCALLED, 4, 0.6 + 0.5 + 1.0),
        ("def aux(x:\n    return", UNCALLED, 4, 0.6),
        ("def aux(x:\n    return", USED, 4, 0.6),
        ("I leave it to main.", UNCALLED, 4, 0.6),
        (AUX, NO_RETURN, 4, 0.4),
        (AUX, NONSENSE, None, 0.4),
        (AUX, "", None, 0.4),
        ("", "", None, 0.0),
    ],
)
def test_published_levels(aux, main, passed, reward):
    score, _ = _score(score_paper, aux, main, *([] if passed is None else [passed]))
    assert score.reward("aux") == score.reward("main") == pytest.approx(reward, abs=1e-9)


@pytest.mark.parametrize(
    ("main", "passed", "reward"),
    [(UNCALLED, 4, 2.1), (UNCALLED, 1, 1.35), (UNCALLED, 0, 1.1), (NO_RETURN, 4, 0.0), ("", 0, 0)],
)
def test_published_levels_of_a_single_agent(main, passed, reward):
    score, _ = _score(score_paper, "", main, passed, functions=ALONE)
    assert score.reward("main") == pytest.approx(reward, abs=1e-9)


NOTHING = [0] * 4


@pytest.mark.parametrize(
    ("aux", "main", "passed", "parts"),
    [
        (AUX, USED, [4, 0, 0, 0, *NOTHING, 4], (0.1, 0.3, 0.6)),
        (AUX, USED, [4, 3, 0, 0, *NOTHING, 4], (0.1, 0.3, 0.4)),
        (AUX, USED, [4, 4, 0, 0], (0.1, 0.3, 0.0)),
        (AUX, USED, [4, 0, 0, 4], (0.1, 0.3, 0.0)),
        (AUX, USED, [4, 0, 0, 0, 4, 0, 0, 0, 4], (0.1, 0.3, 0.21)),
        (AUX, USED, [4, 0, 0, 0, 0, 4, 0, 0, 4], (0.1, 0.3, 0.0)),
        (AUX, USED, [4, 0, 0, 0, 0, 3, 0, 0, 4], (0.1, 0.3, 0.6)),
        (AUX, USED, [4, 0, 0, 0, 0, 0, 4, 0, 4], (0.1, 0.3, 0.0)),
        (AUX, USED, [4, 0, 0, 0, 0, 0, 0, 4, 4], (0.1, 0.3, 0.0)),
        (AUX, USED, [2, 0, 0, 0, *NOTHING, 2], (0.1, 0.15, 0.3)),
        (AUX, USED, [4, 2, 0, 0, *NOTHING, 2], (0.1, 0.3, 0.0)),
        (AUX, USED, [4, 0, 0, 0, *NOTHING, 2], (0.1, 0.3, 0.6)),
        (AUX, USED, [4, 0, 0, 0, *NOTHING, 0], (0.1, 0.3, 0.0)),
        (AUX, USED, [0], (0.1, 0.0, 0.0)),
        ("", UNCALLED, [4], (0.0, 0.3, 0.0)),
        (AUX, "", [], (0.0, 0.0, 0.0)),
        (AUX, NONSENSE, [], (0.0, 0.0, 0.0)),
    ],
)
def test_grounded_parts(aux, main, passed, parts):
    score, sandbox = _score(score_grounded, aux, main, *passed)
    components = score.components["main"]
    assert tuple(components) == ("format", "tests", "cooperation")
    assert tuple(components.values()) == pytest.approx(parts)
    assert score.components["aux"] == components
    assert len(sandbox.programs) == len(passed)


@pytest.mark.parametrize(
    ("main", "passed", "error", "parts"),
    [
        (UNCALLED, [4], "false", (1.0, 1.0, 0.0)),
        (UNCALLED, [3], "false; the last value was 7", (0.75, 0.0, 0.0)),
        (UNCALLED, [3], "ValueError: no", (0.75, 0.0, -0.5)),
        (UNCALLED, [0], "false", (0.0, 0.0, 0.0)),
        (UNCALLED, [1], "not reached; no answer within 3 s", (0.25, 0.0, -0.5)),
        (NO_RETURN, [0], "false", (0.0, 0.0, 0.0)),
        (NONSENSE, [], "", (0.0, 0.0, -0.5)),
        ("", [], "", (0.0, 0.0, -0.5)),
    ],
)
@pytest.mark.parametrize("functions", [TEAM, ALONE])
def test_published_sum_of_attempts(main, passed, error, parts, functions):
    score, _ = _score(score_attempts, AUX, main, *passed, error=error, functions=functions)
    components = score.components["main"]
    assert tuple(components) == ("tests", "all_passed", "error")
    assert tuple(components.values()) == pytest.approx(parts, abs=1e-9)
    assert score.reward("main") == pytest.approx(sum(parts), abs=1e-9)


def test_attempts_are_paid_anew_each_turn():
    first, _ = _score(score_attempts, "", UNCALLED, 3, functions=ALONE)
    again, _ = _score(score_attempts, "", UNCALLED, 3, functions=ALONE, turns=(first,))
    assert again.reward("main") == first.reward("main") == pytest.approx(0.75, abs=1e-9)


def test_single_agent_is_paid_for_tests_alone():
    score, _ = _score(score_grounded, "", UNCALLED, 2, functions=ALONE)
    assert score.components["main"] == {"format": 0.1, "tests": pytest.approx(0.45)}


def test_tests_that_a_constant_passes_are_not_paid():
    attempt = Attempt(TASK, (), {"main": UNCALLED})
    (score,) = score_grounded([attempt], [ALONE], Scripted(3, free=2))
    assert score.components["main"]["tests"] == pytest.approx(0.9 * (3 - 2) / (4 - 2))


def test_tests_that_a_constant_passes_do_not_count_in_the_drop():
    attempt = Attempt(TASK, (), {"aux": AUX, "main": USED})
    (score,) = score_grounded([attempt], [TEAM], Scripted(4, 2, 2, 2, 3, 2, 2, 2, 4, free=2))
    assert score.components["main"]["cooperation"] == pytest.approx(0.6)


def test_several_helpers_share_what_cooperation_pays():
    functions = {"aux_1": "aux_1", "aux_2": "aux_2", "main": "f"}
    actions = {
        "aux_1": AUX.replace("aux", "aux_1"),
        "aux_2": AUX.replace("aux", "aux_2"),
        "main": "def f(x):\n    return aux_1(x) + aux_2(x)",
    }
    sandbox = Scripted(4, *[0] * 3, *[4] * 3, *NOTHING, 4)
    (score,) = score_grounded([Attempt(TASK, (), actions)], [functions], sandbox)
    assert score.components["main"]["cooperation"] == pytest.approx(0.3)


def test_program_that_cannot_load_earns_no_format():
    score, _ = _score(score_grounded, AUX, USED, 0, status="load_error")
    assert score.reward("main") == 0.0


def test_program_that_dies_is_counted_against_all_assertions():
    class Dies:
        def run_many(self, programs):
            records = (TestRecord("f(1) == 2", True), TestRecord("candidate(2) == 3", True))
            died, constant = Outcome("died", 2, 2, records), Outcome("failed", 0, 2)
            return [constant if "kwargs" in p.source else died for p in programs]

    attempt = Attempt(TASK, (), {"main": UNCALLED})
    (score,) = score_grounded([attempt], [ALONE], Dies())
    assert score.components["main"]["tests"] == pytest.approx(0.9 / 4)
    assert not score.solved


def test_solved_is_decided_by_hidden_tests_alone():
    class HiddenPass:
        def run_many(self, programs):
            records = (TestRecord("f(1) == 2", False, "false"), *[TestRecord("h", True)] * 4)
            return [Outcome("failed", 4, 5, records) for _ in programs]

    (score,) = score_paper([Attempt(TASK, (), {"main": UNCALLED})], [ALONE], HiddenPass())
    assert score.solved
    assert score.components["main"]["tests"] == 1.0


def test_two_more_batches_pay_for_all_programs_without_cooperation():
    sandbox = Scripted(*[4] * 2, *[0] * 16)
    batches = []
    original = sandbox.run_many
    sandbox.run_many = lambda programs: batches.append(len(programs)) or original(programs)
    attempts = [Attempt(TASK, (), {"aux": AUX, "main": USED})] * 2
    score_grounded(attempts, [TEAM] * 2, sandbox)
    assert batches == [2, 5, 6, 10]  # the second are constants, run once a task


def test_paper_mode_runs_each_program_once():
    _, sandbox = _score(score_paper, AUX, USED, 4)
    assert len(sandbox.programs) == 1


def test_hidden_tests_stay_out_of_diagnostics_and_components():
    score, _ = _score(score_grounded, AUX, USED, 2, 0, 0, 0, *NOTHING, 2)
    shown = repr(score.diagnostics)
    assert "candidate" not in shown
    assert "f(2)" not in shown
    assert "2 of 4" not in shown


HALF = """```python
def has_close_elements(numbers, threshold):
    ordered = sorted(numbers)
    return any(b - a <= threshold for a, b in zip(ordered, ordered[1:])) and numbers[0] == 1.0
```"""


def test_a_later_turn_earns_only_what_is_new(code_env):
    reference = code_env.reference_actions()
    first = code_env.step({"aux": "", "main": HALF})[1]["main"]
    again_env = code_env
    *_, infos = again_env.step(reference)
    components = infos["main"]["components"]
    assert components["already_earned"] == pytest.approx(-first)
    assert first + sum(components.values()) == pytest.approx(0.4)


def test_repeating_an_answer_earns_nothing(code_env):
    code_env.step({"aux": "", "main": HALF})
    assert code_env.step({"aux": "", "main": HALF})[1]["main"] == 0.0


@pytest.mark.parametrize("num_aux", [0, 1, 2])
def test_all_164_references_pass_every_test(num_aux):
    vec = mlrl_envs.make_vec("mlrl/humaneval-v1", 164, split="all", num_aux=num_aux)
    vec.reset(options=[{"task_index": index} for index in range(164)])
    actions = [env.reference_actions() for env in vec.envs]
    _, rewards, terminations, _, infos = vec.step(actions)
    unsolved = [
        info["main"]["task_id"]
        for info in infos
        if not info["main"]["solved"]
        or info["main"]["components"]["tests"] != (0.3 if num_aux else pytest.approx(0.9))
    ]
    assert unsolved == []
    assert all(all(ends.values()) for ends in terminations)
    assert min(reward["main"] for reward in rewards) == pytest.approx(0.4 if num_aux else 1.0)


def test_all_164_empty_answers_score_the_floor():
    vec = mlrl_envs.make_vec("mlrl/humaneval-v1", 164, split="all")
    vec.reset(options=[{"task_index": index} for index in range(164)])
    _, rewards, *_ = vec.step([{"aux": "", "main": ""}] * 164)
    assert {reward["main"] for reward in rewards} == {0.0}
