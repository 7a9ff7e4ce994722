import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.programs.assembly import read_answer
from mlrl_envs.programs.repacking import only_repacks


def _helper(body, before=""):
    return only_repacks(read_answer(f"{before}\ndef aux(x, y=0):\n    {body}", "aux"))


def _main(body, before=""):
    answer = read_answer(f"{before}\ndef f(x, y=0):\n    {body}", "f")
    return only_repacks(answer, {"aux", "aux_2"})


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "return",
        "return None",
        "return 42",
        "return x",
        "'''Doc.'''\n    return (x, 1)",
        "raise NotImplementedError",
        "y = x\n    return y",
        "return x[0]",
        "return x[::-1]",
        "return list(reversed(x))",
        "return {'n': list(x), 'k': 1}",
        "return [*x], {**y}",
        "return repr(list(x))",
        "return f'{x!r}'",
        "return -x",
        "return [-n for n in x]",
        "return list(map(str, x))",
        "return lambda: x",
        "def g():\n        return x\n    return g",
        "yield x",
        "yield from x",
        "for n in x:\n        yield n",
        "out = []\n    for n in x:\n        out.append(n)\n    return out",
        "import json\n    return json.dumps(x)",
        "from copy import deepcopy as d\n    return d(x)",
        "t = sum(x)\n    return x",
    ],
)
def test_a_helper_that_repacks_its_arguments_does_no_work(body):
    assert _helper(body)


@pytest.mark.parametrize(
    "body",
    [
        "return sorted(x)",
        "return x + 1",
        "return x == x[::-1]",
        "return x.split()",
        "return [int(d) for d in str(x)]",
        "return [n for n in x if n]",
        "return [n * n for n in x]",
        "return {'(': 1, ')': -1}[x]",
        "out = []\n    for n in x:\n        out.append(n * 2)\n    return out",
        "out = {}\n    for n in x:\n        out[n % 2] = n\n    return out",
        "out = []\n    for n in x:\n        if n > 0:\n            out.append(n)\n    return out",
        "best = x[0]\n    for n in x:\n        if n > best:\n            best = n\n    return best",
        "if x % 2:\n        return True\n    return False",
        "return x if x > 0 else 0",
        "match x:\n        case 1:\n            return 'a'\n    return 'b'",
        "x.sort()\n    return x",
        "import heapq\n    heapq.heapify(x)\n    return x",
        "import math\n    return math.sqrt(x)",
        "from math import sqrt\n    return sqrt(x)",
        "n = 0\n    while n < x:\n        n += 1\n    return n",
        "def g(n):\n        return n * 2\n    return g(x)",
        "return lambda: sum(x)",
        "t = 0\n    for n in x:\n        t += n\n    return t",
    ],
)
def test_a_helper_that_computes_works(body):
    assert not _helper(body)


@pytest.mark.parametrize(
    "body",
    [
        "return aux(x)[0]",
        "return aux(x, y)['r'][1:]",
        "return -aux(x)",
        "return not aux(x)",
        "return list(aux(x))",
        "return int(aux(x))",
        "return aux(x)()",
        "return aux(x).value",
        "return aux(x).run()",
        "import ast\n    return ast.literal_eval(aux(x))",
        "from json import loads\n    return loads(aux(x))",
        "return aux(x[::-1])[::-1]",
        "r, _ = aux(x)\n    return r",
        "r = aux(x)\n    r = r[0]\n    return r",
        "r = aux(x)\n    if r is None:\n        return []\n    return r[0]",
        "r = aux(x)\n    if isinstance(r, tuple):\n        return r[0]\n    return r",
        "if len(x) == 0:\n        return []\n    return aux(x)[0]",
        "return aux(x)[0] if x != [] else []",
        "if aux(x)[0]:\n        return True\n    return False",
        "return [r for r in aux(x)]",
        "return next(aux(n)[0] for n in [x])",
        "return next(map(aux, [x]))[0]",
        "for r in aux(x):\n        return r",
        "out = []\n    for r in aux(x):\n        out.append(r)\n    return out",
        "out = []\n    aux(x, out)\n    return out",
        "while True:\n        r = aux(x)\n        return r[0]",
        "g = lambda n: aux(n)[0]\n    return g(x)",
        "try:\n        return aux(x)[0]\n    except Exception:\n        return []",
        "return aux_2(aux(x))",
    ],
)
def test_a_main_that_unpacks_an_answer_does_no_work(body):
    assert _main(body)


@pytest.mark.parametrize(
    "body",
    [
        "return aux(x) + 1",
        "return aux(x) + aux_2(x)",
        "return aux(x) > y",
        "return sorted(aux(x))",
        "return sum(aux(x)) // y",
        "return [r for r in aux(x) if r > y]",
        "return [r * y for r in aux(x)]",
        "return [aux(n) for n in x]",
        "return list(map(aux, x))",
        "out = []\n    for n in x:\n        out.append(aux(n))\n    return out",
        "for n in x:\n        if aux(n):\n            return n\n    return None",
        "if aux(x) > 3:\n        return 'a'\n    return 'b'",
        "if y > 3:\n        return aux(x)\n    return -aux(x)",
        "return aux([n for n in x if n > 0])",
        "return aux(x * 2)",
        "r = aux(x)\n    r.sort()\n    return r",
        "return ' '.join(aux(x))",
        "return {True: 'YES', False: 'NO'}[aux(x)]",
    ],
)
def test_a_main_that_computes_works(body):
    assert not _main(body)


def test_work_in_functions_of_the_same_answer_is_found():
    solve = "def solve(n):\n    return n + 1"
    assert not _helper("return (solve(x), 1)", before=solve)
    assert not _main("return solve(aux(x))", before=solve)
    assert _main("return first(aux(x))", before="def first(n):\n    return n[0]")


def test_a_name_known_from_a_call_for_show_stays_unknown():
    assert not _main("sorted(x)\n    return sorted(aux(x))")


def test_a_missing_function_does_no_work():
    assert only_repacks(read_answer("no code", "aux"))


def test_long_chains_are_read_without_recursion():
    chain = "\n    ".join(f"a{n + 1} = a{n}" for n in range(5000))
    assert _helper(f"a0 = x\n    {chain}\n    return a5000")


@given(st.text(alphabet="xaufr()[]=:,+ \n", max_size=80))
def test_any_text_can_be_read(text):
    only_repacks(read_answer(f"def f(x):\n  {text}", "f"), {"aux"})
