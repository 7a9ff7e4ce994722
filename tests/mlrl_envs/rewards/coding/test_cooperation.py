"""Programs that are run without cooperation, and the exploits that each of them unmasks."""

import pytest

from mlrl_envs.rewards.coding.cooperation import drops_without_cooperation
from mlrl_envs.rewards.coding.runs import run_all
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import Attempt

TASK = CodeTask(
    task_id="test/0",
    prompt="",
    entry_point="f",
    prelude="",
    helper_names=(),
    public_tests=(),
    hidden_tests="assert f([3, 1, 2], 5) == 8\nassert f([4, 9], 2) == 11\nassert f([5], 0) == 5",
    num_hidden_tests=3,
)
AUX = "def aux(xs, n):\n    return max(xs) + 0"
COMPLETE = "def aux(xs, n):\n    return max(xs) + n"
OWN = "own = max(xs) + n"


def _main(body):
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"def f(xs, n):\n{lines}"


def _drop(sandbox, aux, main):
    attempt = Attempt(TASK, (), {"aux": aux, "main": main})
    (run,) = run_all([attempt], [{"aux": "aux", "main": "f"}], sandbox)
    assert run.solved
    (drop,) = drops_without_cooperation([TASK], [run], sandbox)
    return drop


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
    assert _drop(fake_sandbox, aux, _main(body)) > 0.3


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
    assert _drop(fake_sandbox, aux, _main(body)) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("body", "batches"),
    [
        ("return aux(xs, n) + n", [1, 2, 2]),
        ("try:\n    return aux(xs, n) + n\nfinally:\n    pass", [1, 2, 3]),
        ("return aux(xs, n) + n if n != 7 else 0", [1, 2, 3]),
        ("return [aux(xs, n), max(xs)][1] + n", [1, 2]),
        ("return max(xs) + n", [1]),
        ("return aux(xs, n) + n + 0 * len(globals())", [1]),
    ],
)
def test_only_programs_that_can_prove_something_are_run(fake_sandbox, body, batches):
    _drop(fake_sandbox, AUX, _main(body))
    assert [size for size in fake_sandbox.batches if size] == batches


def test_a_main_function_that_calls_itself_keeps_its_own_work(fake_sandbox):
    body = "if n == 0:\n    return aux(xs, 0)\nreturn 1 + f(xs, n - 1)"
    assert _drop(fake_sandbox, AUX, _main(body)) > 0.3
