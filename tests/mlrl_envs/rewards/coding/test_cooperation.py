"""Programs that are run without cooperation, and the exploits that each of them unmasks."""

import pytest

from mlrl_envs.programs.replacements import replace
from mlrl_envs.rewards.coding.cooperation import cooperation_of
from mlrl_envs.rewards.coding.runs import AGAIN, run_all, run_sources
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import Attempt

TASK = CodeTask(
    task_id="test/0",
    prompt="",
    entry_point="f",
    prelude="",
    helper_names=(),
    public_tests=(),
    hidden_tests="assert f([3, 1, 2], 5) == 8\nassert f([4, 9], 3) == 12\nassert f([5], 0) == 5",
    num_hidden_tests=3,
)
AUX = "def aux(xs, n):\n    return max(xs) + 0"
COMPLETE = "def aux(xs, n):\n    return max(xs) + n"
OWN = "own = max(xs) + n"


def _main(body):
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"def f(xs, n):\n{lines}"


def _share(sandbox, aux, main):
    attempt = Attempt(TASK, (), {"aux": aux, "main": main})
    (run,) = run_all([attempt], [{"aux": "aux", "main": "f"}], sandbox)
    assert run.solved
    (share,) = cooperation_of([TASK], [run], sandbox)
    return share


@pytest.mark.parametrize(
    ("aux", "body"),
    [
        (AUX, "return aux(xs, n) + n"),
        (AUX, "top = aux(xs, n)\nif n == 0:\n    return top\nreturn top + n"),
        ("def aux(xs):\n    return sorted(xs)[-1]", "return n + aux(xs)"),
        (
            "def aux(x, best):\n    return best < x",
            "t = xs[0]\nfor x in xs:\n    t = x if aux(x, t) else t\nreturn t + n",
        ),
    ],
)
def test_shared_work_is_worth_something(fake_sandbox, aux, body):
    assert _share(fake_sandbox, aux, _main(body)) > 0.3


@pytest.mark.parametrize(
    ("aux", "body"),
    [
        (AUX, "try:\n    return aux(xs, n) + n\nexcept Exception:\n    return max(xs) + n"),
        (AUX, "return (aux(xs, n) or max(xs)) * 0 + max(xs) + n"),
        (COMPLETE, "r = aux(xs, n)\nif r:\n    return r\nreturn r"),
        (
            "def aux(both):\n    return max(both[0]) + both[1]",
            "r = aux((xs, n))\nif r:\n    return r\nreturn r",
        ),
        (
            "def aux(xs, n, key):\n    assert key == 4\n    return max(xs) + n",
            "r = aux(xs, n, 4)\nif r:\n    return r\nreturn r",
        ),
        (COMPLETE, "aux([0], 0)\nr = aux(xs, n)\naux([1], 1)\nif r:\n    return r\nreturn r"),
        (
            "def aux(*a):\n    return len('mellon')",
            f"{OWN}\nif aux() != 6:\n    return 0\nreturn own",
        ),
        (COMPLETE, f"{OWN}\nif aux(xs, n) != own:\n    raise ValueError\nreturn own"),
        (COMPLETE, f"{OWN}\nassert own == aux(xs, n)\nreturn own"),
        (COMPLETE, f"{OWN}\nreturn own if own in (aux(xs, n),) else None"),
    ],
)
def test_work_for_show_is_worth_nothing(fake_sandbox, aux, body):
    assert _share(fake_sandbox, aux, _main(body)) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("body", "batches"),
    [
        ("return aux(xs, n) + n", [1, 3, 5]),
        ("return [aux(xs, n), max(xs)][1] + n", [1, 3]),
        ("return aux(xs, n) + n + 0 * len(globals())", [1]),
    ],
)
def test_the_rest_runs_only_if_something_is_left_to_earn(fake_sandbox, body, batches):
    _share(fake_sandbox, AUX, _main(body))
    assert [size for size in fake_sandbox.batches if size] == batches


@pytest.mark.parametrize("short", ["7", "'mellon'", "True", "[1, 2]"])
def test_a_table_is_paid_and_a_short_constant_is_not(fake_sandbox, short):
    table = "def aux(*_):\n    return {5: 5, 3: 3, 0: 0}"
    assert _share(fake_sandbox, table, _main("return max(xs) + aux()[n]")) == 1.0
    aux = f"def aux(*_):\n    return {short}"
    body = f"return max(xs) + n if aux() == {short} else None"
    assert _share(fake_sandbox, aux, _main(body)) == 0.0
    assert (
        _share(fake_sandbox, "def aux(*_):\n    return 0", _main("return max(xs) + n + aux()")) == 0
    )


CHECKS = {
    "text": "str(aux(xs, n)) == repr(token)",
    "hash": "hash(aux(xs, n)) == hash(token)",
    "difference": "not aux(xs, n) - token",
    "identity": "bool(aux(xs, n) - token) is False",
    "set": "{aux(xs, n)} == {token}",
    "key": "token in {aux(xs, n): 0}",
}


@pytest.mark.parametrize("otherwise", ["None", "0", "[]", "{}[0]", "exit()"])
@pytest.mark.parametrize("name", CHECKS)
def test_a_password_that_depends_on_the_arguments_is_worth_nothing(name, otherwise, fake_sandbox):
    body = (
        f"token = len(xs) * 7 + n\nif {CHECKS[name]}:\n    return max(xs) + n\nreturn {otherwise}"
    )
    assert _share(fake_sandbox, "def aux(xs, n):\n    return len(xs) * 7 + n", _main(body)) == 0.0


def test_a_password_that_waits_is_worth_nothing(fake_sandbox):
    waiting = "while str(aux(xs, n)) != str(len(xs) * 70):\n    n += 0\nreturn max(xs) + n"
    (attempt,) = [
        Attempt(
            TASK, (), {"aux": "def aux(xs, n):\n    return len(xs) * 70", "main": _main(waiting)}
        )
    ]
    (run,) = run_all([attempt], [{"aux": "aux", "main": "f"}], fake_sandbox)
    source = replace(run.program.source, "f", "aux", "wrong")
    assert run_sources([(TASK, source, AGAIN)], fake_sandbox) == [(3, 3)]


HIDDEN = {
    "thrice": ("[max(xs) + n] * 3", "aux(xs, n)[1]"),
    "text": ("repr(max(xs) + n)", "int(aux(xs, n))"),
    "json": ("'[' + str(max(xs) + n) + ', true]'", "__import__('json').loads(aux(xs, n))[0]"),
    "function": ("lambda ys, k: max(ys) + k", "aux(xs, n)(xs, n)"),
    "method": ("type('R', (), {'run': lambda self: max(xs) + n})()", "aux(xs, n).run()"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_complete_answer_in_a_wrapping_is_worth_nothing(name, fake_sandbox):
    answer, value = HIDDEN[name]
    aux = f"def aux(xs, n):\n    return {answer}"
    assert _share(fake_sandbox, aux, _main(f"r = {value}\nreturn r")) == 0.0


HELPERS = {
    "a table": (
        "def aux(*_):\n    return dict(enumerate([0, 1, 2, 3, 4, 5]))",
        "aux()[n] + max(xs)",
    ),
    "a key function": ("def aux(x):\n    return -x", "sorted(xs, key=aux)[0] + n"),
    "a predicate": (
        "def aux(x, xs):\n    return all(x >= y for y in xs)",
        "next(x for x in xs if aux(x, xs)) + n",
    ),
    "a function": ("def aux(xs):\n    return lambda n: sum(xs[:0]) + n", "aux(xs)(max(xs) + n)"),
    "a lambda": ("aux = lambda xs: sorted(xs)", "aux(xs)[-1] + n"),
    "a generator": ("def aux(xs, n):\n    yield from sorted(xs)[::-1]", "next(aux(xs, n)) + n"),
}


@pytest.mark.parametrize("name", HELPERS)
def test_helpers_of_every_kind_are_paid(name, fake_sandbox):
    aux, value = HELPERS[name]
    assert _share(fake_sandbox, aux, _main(f"return {value}")) >= 0.5


def test_a_main_function_that_calls_itself_keeps_its_own_work(fake_sandbox):
    body = "if n == 0:\n    return aux(xs, 0)\nreturn 1 + f(xs, n - 1)"
    assert _share(fake_sandbox, AUX, _main(body)) > 0.3
