"""What an outcome says, and what tests may rely on across the border."""

import copy
import pickle

import pytest

from mlrl_envs.errors import InfraError, InvalidArgumentError
from mlrl_envs.sandbox import Limits, Program, Sandbox, run, shared_sandbox


def check(source, *assertions, **options):
    body = "\n".join(f"    {line}" for block in assertions for line in block.splitlines())
    return Program(source, f"def check(candidate):\n{body}\n", "check", ("f",), **options)


def asserts(source, tests, *names, **options):
    return Program(source, tests, "asserts", names or ("f",), **options)


def flags(outcome):
    return [record.passed for record in outcome.tests]


def test_each_assertion_is_a_record_and_a_failure_stops_nothing(sandbox):
    outcome = sandbox.run(
        check(
            "def f(x):\n    return x * x",
            "assert candidate(2) == 4\nassert candidate(3) == 8\nassert candidate(1) == 1",
        )
    )
    assert (outcome.status, outcome.passed, outcome.total) == ("failed", 2, 3)
    assert [record.name for record in outcome.tests] == [
        "candidate(2) == 4",
        "candidate(3) == 8",
        "candidate(1) == 1",
    ]
    assert flags(outcome) == [True, False, True]
    assert [record.error for record in outcome.tests] == ["", "false; the last value was 9", ""]
    assert outcome.assurance == "split"
    assert outcome.seconds > 0
    assert outcome.memory_mib > 1


def test_error_texts_tell_what_the_program_did_and_not_what_was_expected(sandbox):
    source = "def f(x):\n    assert x, 'own message'\n    return x + 1"
    tests = "assert candidate(0) == 7, 'seven'\nassert candidate(1) == 7, 'seven'"
    outcome = sandbox.run(check(source, tests))
    assert [record.error for record in outcome.tests] == [
        "AssertionError: own message",
        "false; the last value was 2",
    ]


def test_each_round_of_a_loop_is_a_record(sandbox):
    outcome = sandbox.run(
        check("def f(x):\n    return x", "for i in range(4):\n    assert candidate(i) != 2")
    )
    assert flags(outcome) == [True, True, False, True]


def test_an_exception_in_one_assertion_leaves_the_others(sandbox):
    outcome = sandbox.run(
        check("def f(x):\n    return 1 / x", "assert candidate(0) == 0\nassert candidate(1) == 1")
    )
    assert flags(outcome) == [False, True]
    assert outcome.tests[0].error == "ZeroDivisionError: division by zero"


def test_tests_that_break_off_never_pass(sandbox):
    source = "def f(x):\n    if x: raise ValueError\n    return x"
    outcome = sandbox.run(check(source, "assert candidate(0) == 0\ncandidate(1)"))
    assert (outcome.status, outcome.passed, outcome.total) == ("failed", 1, 2)
    assert outcome.tests[1].error == "ValueError"
    outcome = sandbox.run(
        check(source, "for i in range(2):\n    y = candidate(i)\n    assert y == i")
    )
    assert (outcome.status, outcome.passed, outcome.total) == ("failed", 1, 2)
    assert not outcome.tests[1].passed


def test_tests_without_assertions_are_never_passed(sandbox):
    assert sandbox.run(check("def f(): pass", "candidate()\nassert True")).status == "failed"


def test_a_timeout_keeps_what_had_passed():
    with Sandbox(workers=1, limits=Limits(test_seconds=0.3)) as sandbox:
        source = "def f(x):\n    while x == 2: pass\n    return x"
        outcome = sandbox.run(check(source, "for i in range(4):\n    assert candidate(i) == i"))
    assert (outcome.status, outcome.passed, outcome.total) == ("timeout", 2, 4)
    assert flags(outcome) == [True, True, False, False]
    assert outcome.tests[2].error == "no answer within 0.3 s"
    assert outcome.seconds < 2


@pytest.mark.parametrize(
    ("limits", "source", "status"),
    [
        (Limits(load_seconds=0.3), "while True: pass", "timeout"),
        (Limits(test_seconds=9, cpu_seconds=1), "def f():\n    while True: pass", "cpu_limit"),
        (Limits(wall_seconds=0.4), "import time\ndef f():\n    time.sleep(9)", "timeout"),
        (Limits(memory_mib=20), "def f():\n    return len('x' * (1 << 26))", "memory"),
    ],
)
def test_each_limit_has_its_status(limits, source, status):
    with Sandbox(workers=1, limits=limits) as sandbox:
        assert sandbox.run(check(source, "assert candidate() == 1")).status == status


def test_output_is_kept_even_if_the_program_dies(sandbox):
    source = "import os\ndef f():\n    print('h\\u00e9llo\\x1b[31m')\n    os._exit(0)"
    outcome = sandbox.run(check(source, "assert candidate() == 1"))
    assert outcome.status == "died"
    assert outcome.stdout == "h\u00e9llo[31m\n"


def test_output_is_cut():
    with Sandbox(workers=1, limits=Limits(output_kib=1)) as sandbox:
        outcome = sandbox.run(
            check("def f():\n    print('x' * 5000)\n    return 1", "assert candidate() == 1")
        )
    assert outcome.status == "passed"
    assert outcome.stdout == "x" * 1024


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("def f(:", "SyntaxError"),
        ("raise KeyError('no')", "KeyError: 'no'"),
        ("def g(): pass", "NameError: the source defines no 'f'"),
        ("import sys\nsys.exit()", "SystemExit raised"),
    ],
)
def test_a_source_that_does_not_load_says_why(source, error, sandbox):
    outcome = sandbox.run(check(source, "assert candidate() == 1"))
    assert outcome.status == "load_error"
    assert outcome.error.startswith(error)
    assert flags(outcome) == [False]


def test_errors_are_the_same_every_time(sandbox):
    source = "def f():\n    return [{'b', 'a', 'c'}, object.__repr__, (lambda: 0)]"
    program = check(source, "assert candidate() == 1\nassert candidate(1) == 1")
    first, second = sandbox.run(program), sandbox.run(program)
    assert first.tests == second.tests
    assert "0x7" not in repr(first)


def test_helpers_run_in_the_judge(sandbox):
    program = asserts(
        "def double(x):\n    return 0\ndef f(x):\n    return 0",
        "assert f(2) == double(2)",
        helpers="def double(x):\n    return 2 * x",
    )
    assert sandbox.run(program).status == "failed"


def test_helpers_that_raise_are_the_callers_mistake(sandbox):
    program = check("def f(): return 1", "assert candidate() == 1", helpers="1 / 0")
    with pytest.raises(InvalidArgumentError, match="ZeroDivisionError"):
        sandbox.run(program)
    assert sandbox.run(check("def f(): return 1", "assert candidate() == 1")).status == "passed"


@pytest.mark.parametrize(
    ("source", "tests"),
    [
        ("def f(xs): xs.sort()", "xs = [3, 1]\nf(xs)\nassert xs == [1, 3]"),
        (
            "def f(m):\n    for r in m: r.reverse()",
            "m = [[1, 2], [3]]\nf(m)\nassert m == [[2, 1], [3]]",
        ),
        ("def f(d): d['x'] = [1]", "d = {}\nf(d)\nassert d == {'x': [1]}"),
        ("def f(xs): return xs", "xs = [1]\nassert f(xs) is xs"),
        ("def f(xs): return list(xs)", "xs = [1]\nassert f(xs) is not xs and f(xs) == xs"),
        (
            "class f:\n    def __init__(self): self.items = []",
            "o = f()\no.items.append(3)\nassert o.items == [3]",
        ),
        (
            "class f:\n    n = 1\n    def up(self): self.n += 1",
            "o = f()\no.up()\nassert o.n == 2\no.n = 9\nassert o.n == 9 and f.n == 1",
        ),
        ("class f:\n    pass", "a, b = f(), f()\na.next = b\nassert a.next is b and a is not b"),
        ("class f:\n    pass", "assert isinstance(f(), f) and not isinstance(3, f)"),
        ("class f:\n    pass", "o = f()\no.x = 1\ndel o.x\nassert not hasattr(o, 'x')"),
        ("class f(ValueError):\n    pass\n", "assert issubclass(f, ValueError)"),
        ("def f(g, xs): return [g(x) for x in xs]", "assert f(lambda x: x + 1, [1, 2]) == [2, 3]"),
        ("def f(n):\n    for i in range(n): yield i", "assert list(f(3)) == [0, 1, 2]"),
        (
            "def f():\n    n = 0\n    while True:\n        yield n\n        n += 1",
            "import itertools\nassert list(itertools.islice(f(), 3)) == [0, 1, 2]",
        ),
        ("def f(x): return {1: (2, {3})}", "assert f(0) == {1: (2, {3})}"),
        ("def f(*a, **k): return a, k", "assert f(1, b=2) == ((1,), {'b': 2})"),
        ("f = 3", "assert f == 3"),
        ("def f(): return f", "assert f() is f and f.__name__ == 'f'"),
        ("def f(t): return t is int", "assert f(int)"),
        (
            "import asyncio\nasync def g(): return 3\ndef f(): return asyncio.run(g())",
            "assert f() == 3",
        ),
        ("import math\ndef f(): return 10 ** 5000 + 1", "assert f() == 10 ** 5000 + 1"),
        ("def f(s): return s[::-1]", "assert f('\\ud800\\0x') == 'x\\0\\ud800'"),
    ],
)
def test_what_tests_rely_on_crosses_the_border(source, tests, sandbox):
    outcome = sandbox.run(asserts(source, tests))
    assert outcome.status == "passed", outcome


def test_exceptions_of_the_source_can_be_expected(sandbox):
    source = (
        "class TooBig(ValueError):\n    pass\n"
        "def f(x):\n    if x > 9: raise TooBig(x)\n    raise KeyError('k')\n"
    )
    tests = (
        "import unittest\nclass T(unittest.TestCase):\n"
        "    def test_own(self):\n        with self.assertRaises(TooBig) as c: f(10)\n"
        "        self.assertEqual(c.exception.args, (10,))\n"
        "    def test_builtin(self):\n        self.assertRaises(KeyError, f, 1)\n"
        "    def test_wrong(self):\n        self.assertRaises(TypeError, f, 1)\n"
    )
    outcome = sandbox.run(Program(source, tests, "unittest", ("f", "TooBig")))
    assert {r.name: r.passed for r in outcome.tests} == {
        "T.test_builtin": True,
        "T.test_own": True,
        "T.test_wrong": False,
    }


def test_unittest_methods_are_records_with_patches_and_fixtures(sandbox):
    source = (
        "class Shop:\n"
        "    def greet(self):\n        name = input('name? ')\n        print('hello', name)\n"
        "    def save(self, path):\n        with open(path, 'w') as f: f.write('saved')\n"
    )
    tests = (
        "import unittest, io, os\nfrom unittest.mock import patch\n"
        "class T(unittest.TestCase):\n"
        "    def setUp(self): self.shop = Shop()\n"
        "    @patch('sys.stdout', new_callable=io.StringIO)\n"
        "    @patch('builtins.input', return_value='Ann')\n"
        "    def test_greet(self, _input, out):\n"
        "        self.shop.greet()\n        self.assertIn('hello Ann', out.getvalue())\n"
        "    def test_save(self):\n"
        "        self.shop.save('x.txt')\n        self.assertEqual(open('x.txt').read(), 'saved')\n"
        "    def test_skip(self): self.skipTest('no')\n"
        "    def test_sub(self):\n"
        "        for i in range(2):\n"
        "            with self.subTest(i=i): self.assertEqual(i, 0)\n"
    )
    outcome = sandbox.run(Program(source, tests, "unittest", ("Shop",)))
    assert {r.name: r.passed for r in outcome.tests} == {
        "T.test_greet": True,
        "T.test_save": True,
        "T.test_skip": False,
        "T.test_sub": False,
    }


def test_a_dead_candidate_is_not_an_expected_exception(sandbox):
    tests = (
        "import unittest\nclass T(unittest.TestCase):\n"
        "    def test_a(self):\n        self.assertRaises(BaseException, f)\n"
        "    def test_b(self):\n        try: f()\n        except: pass\n"
    )
    for source in ("import os\ndef f(): os._exit(0)", "def f(): raise SystemExit"):
        outcome = sandbox.run(Program(source, tests, "unittest", ("f",)))
        assert outcome.passed == 0
        assert outcome.total == 2


def test_operators_cross_only_if_the_program_says_so(sandbox):
    source = "class f:\n    def __len__(self): return 3\n    def __eq__(self, o): return True\n"
    tests = "assert len(f()) == 3\nassert f() == 1\nassert f() == f()"
    assert flags(sandbox.run(asserts(source, tests))) == [False, False, False]
    opened = asserts(source, tests, dunders=("__len__", "__eq__"))
    assert flags(sandbox.run(opened)) == [True, False, True]


def test_operators_that_tests_use_on_their_own_instances_cross(sandbox):
    source = (
        "class Box:\n"
        "    def __init__(self): self.d = {}\n"
        "    def __setitem__(self, k, v): self.d[k] = v\n"
        "    def __getitem__(self, k): return self.d[k]\n"
        "    def __len__(self): return len(self.d)\n"
        "    def fake(self): return Box()\n"
    )
    tests = (
        "import unittest\nclass T(unittest.TestCase):\n"
        "    def setUp(self): self.box = Box()\n"
        "    def test_use(self):\n"
        "        self.box['a'] = 1\n"
        "        self.assertEqual((self.box['a'], len(self.box)), (1, 1))\n"
        "    def test_result(self): self.assertEqual(len(self.box.fake()), 0)\n"
        "    def test_in(self): self.assertTrue('a' in self.box.fake())\n"
    )
    outcome = sandbox.run(Program(source, tests, "unittest", ("Box",)))
    assert {r.name: r.passed for r in outcome.tests} == {
        "T.test_in": False,
        "T.test_result": False,
        "T.test_use": True,
    }


def test_scratch_files_do_not_outlive_their_program(sandbox):
    source = "import os\ndef f():\n    s = os.listdir()\n    open('x', 'w').close()\n    return s"
    program = check(source, "assert candidate() == []\nassert candidate() == ['x']")
    for _ in range(4):
        assert sandbox.run(program).status == "passed"


def test_run_many_keeps_the_order_and_isolates_bad_items(sandbox):
    sources = ["def f(): return 1", "def f(", "import os\nos._exit(1)", "def f(): return 2"] * 3
    outcomes = sandbox.run_many(check(source, "assert candidate() == 1") for source in sources)
    statuses = [outcome.status for outcome in outcomes]
    assert statuses == ["passed", "load_error", "died", "failed"] * 3


def test_run_many_of_nothing_is_nothing(sandbox):
    assert sandbox.run_many([]) == []


def test_equal_programs_are_run_once_unless_the_cache_is_off():
    program = check("import time\ndef f(): return time.time_ns()", "assert candidate() == 1")
    with Sandbox(workers=1) as cached, Sandbox(workers=1, cache=False) as uncached:
        assert cached.run(program) is cached.run(program)
        assert uncached.run(program).tests != uncached.run(program).tests


def test_a_sandbox_travels_as_its_configuration():
    sandbox = Sandbox(workers=3, limits=Limits(wall_seconds=7), cache=False)
    for twin in (pickle.loads(pickle.dumps(sandbox)), copy.deepcopy(sandbox)):
        assert (twin.workers, twin.limits, twin.cache) == (3, sandbox.limits, False)
        assert not twin._all


def test_a_source_too_large_to_send_does_not_load(sandbox):
    outcome = sandbox.run(check("#" * (33 << 20), "assert candidate() == 1"))
    assert outcome.status == "load_error"


def test_module_level_run_infers_what_it_needs():
    assert run("def f(x): return x", "assert f(1) == 1").status == "passed"
    assert run("def f(x", "assert f(1) == 1").status == "load_error"
    assert shared_sandbox() is shared_sandbox(Limits())
    shared_sandbox().close()


def test_a_tier_that_cannot_be_reached_is_an_infrastructure_error(monkeypatch):
    monkeypatch.setenv("MLRL_SANDBOX_TIER", "B")
    with pytest.raises(InfraError, match="tier B"), Sandbox(minimum_tier="A") as sandbox:
        sandbox.run(check("def f(): return 1", "assert candidate() == 1"))


def test_tier_d_is_refused_unless_allowed(monkeypatch):
    monkeypatch.setenv("MLRL_SANDBOX_TIER", "D")
    program = check("def f(): return 1", "assert candidate() == 1")
    with pytest.raises(InfraError, match="allow_insecure"), Sandbox() as sandbox:
        sandbox.run(program)
    with Sandbox(allow_insecure=True) as sandbox, pytest.warns(RuntimeWarning, match="tier D"):
        assert sandbox.run(program).status == "passed"


def test_tier_c_warns_loudly(monkeypatch):
    from mlrl_envs.sandbox import probing

    monkeypatch.setenv("MLRL_SANDBOX_TIER", "C")
    monkeypatch.setattr(probing, "_known", {})
    program = check("def f(): return 1", "assert candidate() == 1")
    with Sandbox() as sandbox, pytest.warns(RuntimeWarning, match="tier C"):
        assert sandbox.run(program).status == "passed"
