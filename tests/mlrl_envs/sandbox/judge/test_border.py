"""Tests of what tests may rely on across the process boundary, and of what must not cross it."""

import pytest

from mlrl_envs.sandbox import Program


def check(source, *assertions, **options):
    body = "\n".join(f"    {line}" for block in assertions for line in block.splitlines())
    return Program(source, f"def check(candidate):\n{body}\n", "check", ("f",), **options)


def asserts(source, tests, *names, **options):
    return Program(source, tests, "asserts", names or ("f",), **options)


def flags(outcome):
    return [record.passed for record in outcome.tests]


def test_helpers_run_in_the_judge(sandbox):
    program = asserts(
        "def double(x):\n    return 0\ndef f(x):\n    return 0",
        "assert f(2) == double(2)",
        helpers="def double(x):\n    return 2 * x",
    )
    assert sandbox.run(program).status == "failed"


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
def test_calls_values_and_identity_behave_as_in_one_process(source, tests, sandbox):
    outcome = sandbox.run(asserts(source, tests))
    assert outcome.status == "passed", outcome


def test_tests_can_expect_exceptions_of_the_source(sandbox):
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


def test_operators_are_forwarded_only_if_the_program_lists_them(sandbox):
    source = "class f:\n    def __len__(self): return 3\n    def __eq__(self, o): return True\n"
    tests = "assert len(f()) == 3\nassert f() == 1\nassert f() == f()"
    assert flags(sandbox.run(asserts(source, tests))) == [False, False, False]
    opened = asserts(source, tests, dunders=("__len__", "__eq__"))
    assert flags(sandbox.run(opened)) == [True, False, True]


def test_operators_that_tests_use_on_their_instances_are_forwarded(sandbox):
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


def test_scratch_files_are_deleted_after_their_program(sandbox):
    source = "import os\ndef f():\n    s = os.listdir()\n    open('x', 'w').close()\n    return s"
    program = check(source, "assert candidate() == []\nassert candidate() == ['x']")
    for _ in range(4):
        assert sandbox.run(program).status == "passed"
