import pytest

from mlrl_envs.programs.inspection import inspects
from mlrl_envs.testing import JUNK_TEXTS

FOUND = [
    "import os\nos._exit(0)",
    "import os as o\nx = o.kill\nx(1, 9)",
    "from os import abort",
    "from os import kill as k\nk(1, 9)",
    "from os import *\nkill(1, 9)",
    "from os import *\ndef g(sleep): pass\nsleep(9)",
    "from time import sleep",
    "import sys\nsys._getframe(1)",
    "import sys\nsys.settrace(print)",
    "import signal",
    "import os, signal as s",
    "from inspect import stack",
    "import gc.x",
    "from builtins import print",
    "f.__code__",
    "f.__code__ = g",
    "match f:\n    case object(__closure__=c): pass",
    "class C:\n    __match_args__ = ('__globals__',)\nmatch f:\n    case C(x): pass",
    "globals()",
    "g = globals\ng()",
    "def g(): globals = 1\nglobals()",
    "__builtins__",
    "def g(): __import__ = 1\n__import__('os')",
    "getattr(f, '__code__')",
    "name = '_exit'\ngetattr(os, name)(0)",
    "import os\ngetattr(os, 'kill')",
    "os.__dict__['_exit'](0)",
    "code = 'import signal'\nexec(code)",
    "exec(b'import gc')",
    "eval('f.__closure__')",
    "eval(f'globals()')",
    "exec('\\n'.join(['from time import *', 'sleep(9)']))",
    "'{0.__globals__}'.format(f)",
    "import importlib\nimportlib.import_module('gc')",
    "from operator import attrgetter as a\nx = '__code__'\na(x)(f)",
    "import os\nos.system('sleep 9')",
    "def f():\n    'import signal'\nexec(f.__doc__)",
    "text = 'import signal'\nimport timeit\ntimeit.timeit(text)",
    "exec(text)\ndef g(sleep): pass\nsleep(9)",
    "def f(x: 'globals()'): pass",
    "import os\ndef _exit(): pass\ngetattr(os, _exit.__name__)(0)",
    "import os\ndef f(**k): return getattr(os, [*k][0])\nf(_exit=0)",
    "import os\ndef kill(): pass\nos.__dict__[kill.__name__]",
    "import operator, os\ndef abort(): pass\noperator.attrgetter(abort.__name__)(os)()",
    "def f(:",
]
NOT_FOUND = [
    "",
    "def f(sleep, kill=1):\n    '''To sleep, use globals().'''\n    return sleep + kill",
    "def kill(x):\n    return x\nkill(1)",
    "abort = [1]\nfor sleep in abort: print(sleep)",
    "vars = {}\nvars[1] = 2",
    "lambda kill: kill + 1",
    "try: pass\nexcept OSError as abort: print(abort)",
    "match f:\n    case [sleep, *kill]: print(sleep, kill)",
    "# globals()\n'abort'\nx = 1",
    "import os\nos.path.join('a', 'b')",
    "def signal(inspect): return inspect\nsignal(1)",
    "f(kill=1)",
    "asleep = 1\nprint(skill, 'asleep')",
    "getattr(x, 'size')",
    "import re\nsleep = re.compile(str(1))\nprint(sleep)",
    "from math import *\nsqrt(2)",
]


@pytest.mark.parametrize("source", FOUND)
def test_inspection_is_found(source):
    assert inspects(source)


@pytest.mark.parametrize("source", NOT_FOUND)
def test_names_and_docstrings_of_a_program_are_its_own(source):
    assert not inspects(source)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", JUNK_TEXTS, ids=range(len(JUNK_TEXTS)))
def test_junk_is_survived(text):
    assert inspects(text) in (True, False)
