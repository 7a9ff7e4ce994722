"""Replacements of a helper or a main function, as source code that runs in the candidate.

Each replacement shows, by the pass rate of the changed program, one way in which an answer may
add nothing. Those in `STUBS` answer without the helper's work. Those in `WRAPPERS` call the real
helper: "empty" gives the empty value of its type, "agrees" one that equals everything and differs
by nothing, "other" its answer to another input or a changed one; "repacks" withholds every answer
that holds more than the arguments, "constant" answers that differ from the first. "hands_on"
withholds the results of main that are not in its helper's answer.
"""

from mlrl_envs.programs.assembly import replace_function

__all__ = ["REPLACEMENTS", "replace"]

# The body of the helper.
STUBS = {
    "none": "return None",
    "first": "return [*args, *kwargs.values(), None][0]",
    "list": "return [*args, *kwargs.values()]",
}
# The body of the helper, or of main; `real` is the original function, `seen` a list that stays.
WRAPPERS = {
    "empty": """
answer = real(*args, **kwargs)
if is_iterator(answer):
    return iter(())
try:
    return type(answer)()
except Exception:
    return None
""",
    "agrees": """
answer = real(*args, **kwargs)
kind = int if isinstance(answer, bool) or answer is None else type(answer)
def yes(*_):
    return True
def no(*_):
    return False
def nothing(*_):
    return 0
names = {"__eq__": yes, "__ne__": no, "__le__": yes, "__ge__": yes, "__lt__": no, "__gt__": no,
         "__sub__": nothing, "__rsub__": nothing, "__xor__": nothing, "__rxor__": nothing,
         "__hash__": lambda self: hash(kind), "startswith": yes, "endswith": yes,
         "__contains__": yes}
try:
    return type("Agreeable", (kind,), names)()
except Exception:
    return type("Agreeable", (), names)()
""",
    "other": """
answer = keep(real(*args, **kwargs))
seen.append(answer)
kept, first = held(answer), held(seen[0])
if not isinstance(answer, (bool, int, float, str, list, tuple, set, frozenset, dict, type(None))):
    return answer if len(seen) % 2 else None
return first if kept != first else change(kept)
""",
    "constant": """
answer = keep(real(*args, **kwargs))
seen.append(held(answer))
if same(seen[0], seen[-1]):
    return answer
raise RuntimeError
""",
    "repacks": """
given = [*args, *kwargs.values()]
parts = [given, *[item for item in given if isinstance(item, (str, list, tuple, set, dict))]]
parts += [list(item) for item in parts if isinstance(item, str)]
parts += given if len(given) == 1 else []
told = [plain(part) for part in parts]
answer = keep(real(*args, **kwargs))
if any(view in told for view in views(answer)):
    return answer
raise RuntimeError
""",
}
HELPER_OF_MAIN = """
asked.append(True)
answer = keep(real(*args, **kwargs))
told = [*args, *kwargs.values()]
told += [p for v in told for p in (v if isinstance(v, (list, tuple)) else
         v.values() if isinstance(v, dict) else ())]
if given and all(any(item is part or same(item, part) for part in told) for item in given):
    seen.extend(views(answer))
return answer
"""
HANDS_ON = """
if given:
    return main(*args, **kwargs)
given.extend([*args, *kwargs.values()])
seen.clear()
asked.clear()
try:
    result = keep(main(*args, **kwargs))
finally:
    given.clear()
if not asked:
    return result
matching = [n for n, view in enumerate(seen) if view == plain(result)]
hits.extend(matching)
calls.append(result)
if any(hits.count(n) > 0.6 * len(calls) for n in matching):
    return result
raise RuntimeError
"""
# `plain` makes values comparable whatever their containers; `views` are the values that can be
# taken out of an answer without work.
_TOOLS = """
import ast, itertools
class Kept:
    def __init__(self, iterator):
        self.items = list(itertools.islice(iterator, 200))
        self.rest = itertools.chain(self.items, iterator)
    def __iter__(self):
        return self
    def __next__(self):
        return next(self.rest)
def is_iterator(value):
    return hasattr(value, "__next__")
def keep(value):
    return Kept(value) if is_iterator(value) else value
def held(value):
    return value.items if isinstance(value, Kept) else value
def same(one, other):
    try:
        return one is other or bool(one == other)
    except Exception:
        return False
def plain(value, depth=5):
    value = held(value)
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, (set, frozenset)):
        return ["set", *sorted(map(str, value))]
    if isinstance(value, (list, tuple, range)) and depth:
        return [plain(item, depth - 1) for item in value]
    return str(value) if depth == 5 else str(value).lstrip("-")
def views(value, depth=3):
    found = [plain(value)]
    value = held(value)
    parts = []
    if isinstance(value, str) and value[:1] in ("[", "(", "{"):
        try:
            parts = [ast.literal_eval(value)]
        except Exception:
            pass
    elif isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, (list, tuple)):
        found += [found[0][::-1], found[0][1:], found[0][:-1]]
        parts = value
    elif callable(value) or hasattr(value, "__dict__"):
        parts = [v for n, v in getattr(value, "__dict__", {}).items() if n[:1] != "_"]
        try:
            parts += [value()]
        except Exception:
            pass
    if depth and len(parts) <= 3:
        found += [view for part in parts for view in views(part, depth - 1)
                  if len(parts) < 3 or isinstance(view, list)]
    return found
def change(value):
    if value is None or isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, (set, frozenset)):
        return type(value)(sorted(value, key=repr)[::2])
    if isinstance(value, dict):
        return dict(zip(value, change(list(value.values()))))
    pairs = [value[n - n % 2] for n in range(len(value))]
    changed = "".join(pairs) if isinstance(value, str) else type(value)(pairs)
    return changed if changed != value else value[:0]
"""


def replace(source: str, main: str, helper: str, name: str) -> str | None:
    """Return the program with one replacement, or None if it does not parse.

    Args:
        source: The program.
        main: Name of the main function.
        helper: Name of the helper.
        name: One of `REPLACEMENTS`.
    """
    if name in STUBS:
        return replace_function(source, helper, _define(helper, STUBS[name]))
    if name in WRAPPERS:
        code = _enclose(_define("changed", WRAPPERS[name]), "changed", helper)
        return replace_function(source, helper, code, keep_as=helper)
    inner = f"{_define('changed', HELPER_OF_MAIN)}\n{_define('changed_main', HANDS_ON)}"
    code = _enclose(inner, "changed, changed_main", f"{helper}, {main}")
    return replace_function(source, main, code, keep_as=main)


REPLACEMENTS = (*STUBS, *WRAPPERS, "hands_on")


def _define(name: str, body: str) -> str:
    return f"def {name}(*args, **kwargs):\n" + _indent(body)


def _enclose(inner: str, changed: str, names: str) -> str:
    """Return code that keeps the originals and the tools out of the program's global names."""
    body = _indent(
        f"{_TOOLS}\ngiven, seen, asked, hits, calls = [], [], [], [], []\n{inner}\nreturn {changed}"
    )
    return f"def _without(real, main=None):\n{body}\n{names} = _without({names})\ndel _without"


def _indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.strip("\n").split("\n"))
