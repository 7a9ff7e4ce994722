"""Replacements of a helper or a main function, as source code that runs in the candidate.

Each replacement shows, by the pass rate of the changed program, one way in which an answer may
add nothing. `STUBS` answer without the helper's work. `WRAPPERS` call the real helper and withhold
its answer unless it is trivial: "repacks" unless it merely holds the arguments, "constant" unless
it is always the same and short. `PAIRS` replace main as well, and withhold its result unless the
work is one-sided: "hands_on" unless the result is in the helper's answer, "wrong" unless wrong
answers of the helper do not matter, or all lead to the same other result, as with a password.
"""

from mlrl_envs.programs.assembly import replace_function

__all__ = ["REPLACEMENTS", "replace"]

# The body of the helper.
STUBS = {
    "none": "return None",
    "first": "return [*args, *kwargs.values(), None][0]",
    "list": "return [*args, *kwargs.values()]",
}
# The body of the helper; `real` is the original function. Names of the tools below may be used,
# and the lists `given`, `seen`, `asked`, `hits`, `calls`, `trial` and `junk`, which stay.
WRAPPERS = {
    "constant": """
answer = keep(called(real, args, kwargs))
seen.append(held(answer))
if same(seen[0], seen[-1]) and len(repr(seen[-1])) < 10:
    return answer
raise RuntimeError
""",
    "repacks": """
given = [*args, *kwargs.values()]
parts = [given, *[item for item in given if isinstance(item, (str, list, tuple, set, dict))]]
parts += [list(item) for item in parts if isinstance(item, str)]
told = [plain(part) for part in parts]
answer = keep(called(real, args, kwargs))
whole = plain(answer) in told + [plain(item) for item in given[:1]]
if whole or told[0] in columns(answer) or any(view in told for _, view in views(answer)):
    return answer
raise RuntimeError
""",
}
# The bodies of the helper and of main.
PAIRS = {
    "hands_on": (
        """
asked.append(True)
answer = keep(called(real, args, kwargs))
told = [*args, *kwargs.values()]
told += [p for v in told for p in (v if isinstance(v, (list, tuple)) else
         v.values() if isinstance(v, dict) else ())]
if given and all(any(item is part or same(item, part) for part in told) for item in given):
    seen.extend(views(answer, given))
return answer
""",
        """
if given:
    return called(main, args, kwargs)
given.extend([*args, *kwargs.values()])
seen.clear()
asked.clear()
try:
    result = keep(called(main, args, kwargs))
finally:
    given.clear()
if not asked:
    return result
right = plain(result)
matching = {label for label, view in seen if view == right}
hits.extend(matching)
calls.append(result)
if any(hits.count(label) > 0.6 * len(calls) for label in matching):
    return result
raise RuntimeError
""",
    ),
    "wrong": (
        """
wrong = trial.pop() if trial else None
try:
    answer = keep(called(real, args, kwargs))
finally:
    trial.extend([wrong] if wrong else [])
kept = held(answer)
if wrong:
    return iter(wrong(kept, seen)) if answer is not kept else wrong(kept, seen)
if len(seen) < 50 and not any(same(kept, other) for other in seen):
    seen.append(copied(kept))
return answer
""",
        """
if given:
    return called(main, args, kwargs)
if len(junk) > 1:
    raise RuntimeError
given.append(True)
again = copied((args, kwargs))
start = tried = time.process_time()
try:
    result = keep(called(main, args, kwargs))
    tried = time.process_time()
    patience = min(0.02 + 3 * (tried - start), 0.15)
    calls.append((plain(result), again))
    for right, again in (calls[-1], calls[0]):
        found = []
        for wrong in (changed, turned, foreign, latest):
            if time.process_time() - start > 0.3 or sum(hits) > 0.8:  # too slow to be tried
                return result
            trial[:] = [wrong]
            found.append(outcome(patience, main, *copied(again)))
            trial.clear()
        for text in [text for text in found if text != ERROR] or found:
            junk.extend([text] if text != right and text not in junk else [])
finally:
    given.clear()
    hits.append(time.process_time() - tried)
if len(junk) > 1:
    raise RuntimeError
return result
""",
    ),
}
# `plain` makes values comparable whatever their containers; `views` and `columns` are the values
# that can be taken out of an answer without work. `changed`, `turned`, `foreign` and `latest` make
# wrong answers of the same kind, the last two from answers to other inputs.
_TOOLS = """
import ast, copy, itertools, json, numbers, signal, sys, time
ERROR = ["error"]
def called(function, args, kwargs, frames=2):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + frames)  # as deep as without the wrapper and this function
    try:
        return function(*args, **kwargs)
    finally:
        sys.setrecursionlimit(limit)
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
def views(value, given=(), label="", depth=3):
    value = held(value)
    found, parts = [(label, plain(value))], {}
    if isinstance(value, str):
        parts = {"read": attempt(ast.literal_eval, value), "json": attempt(json.loads, value)}
    elif isinstance(value, dict):
        parts = value
    elif isinstance(value, (list, tuple)):
        shown = found[0][1]
        found += [("-", shown[::-1]), ("1:", shown[1:]), (":1", shown[:-1])]
        parts = dict(enumerate(value))
    elif callable(value):
        parts = {n: attempt(value, *call) for n, call in enumerate(((), given, given[::-1]))}
    elif hasattr(value, "__dict__"):
        parts = {n: getattr(value, n) for n in dir(value) if n[:1] != "_"}
    if depth and len(parts) <= 3:
        found += [view for name, part in parts.items()
                  for view in views(part, given, f"{label}.{name}", depth - 1)]
    return found
def attempt(function, *args):
    try:
        return function(*copied(args))
    except Exception:
        return None
def columns(value):
    rows = list(value.values()) if isinstance(value, dict) else held(value)
    try:
        return [plain(rows), *(plain(list(column)) for column in zip(*rows))]
    except TypeError:
        return [plain(rows)]
def changed(value, seen=()):
    if value is None or isinstance(value, bool):
        return not value
    if isinstance(value, numbers.Number):
        return value + 1
    if isinstance(value, dict):
        return {key: changed(item) for key, item in value.items()}
    if isinstance(value, str):
        return "".join(chr(ord(char) ^ 1) for char in value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return remake(value, [changed(item) for item in value])
    if callable(value):
        return lambda *args, **kwargs: changed(value(*args, **kwargs))
    return Changed(value)
def remake(value, items):
    return value._make(items) if hasattr(value, "_make") else type(value)(items)
class Changed:
    def __init__(self, value):
        self.__value = value
    def __getattr__(self, name):
        return changed(getattr(self.__value, name))
def turned(value, seen=()):
    if isinstance(value, numbers.Number):
        return -value
    if isinstance(value, str):
        return value[::-1]
    if isinstance(value, dict):
        return dict(zip(value, list(value.values())[::-1]))
    return remake(value, list(value)[::2 if isinstance(value, (set, frozenset)) else -1])
def foreign(value, seen):
    return next((copied(other) for other in seen if not same(other, value)), None)
def latest(value, seen):
    return foreign(value, seen[::-1])
def copied(value):
    try:
        return copy.deepcopy(value)
    except Exception:
        return value
class Stop(BaseException):
    pass
def stop(*_):
    raise Stop
def outcome(patience, main, args, kwargs):
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, patience, 0.01)  # again, if it was caught
    try:
        return plain(keep(called(main, args, kwargs, frames=3)))
    except BaseException:
        return ERROR
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
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
        code = _enclose(_define("changed_helper", WRAPPERS[name]), "changed_helper", helper)
        return replace_function(source, helper, code, keep_as=helper)
    of_helper, of_main = PAIRS[name]
    inner = f"{_define('changed_helper', of_helper)}\n{_define('changed_main', of_main)}"
    code = _enclose(inner, "changed_helper, changed_main", f"{helper}, {main}")
    return replace_function(source, main, code, keep_as=main)


REPLACEMENTS = (*STUBS, *WRAPPERS, *PAIRS)


def _define(name: str, body: str) -> str:
    return f"def {name}(*args, **kwargs):\n" + _indent(body)


def _enclose(inner: str, changed: str, names: str) -> str:
    """Return code that keeps the originals and the tools out of the program's global names."""
    lists = "given, seen, asked, hits, calls, trial, junk = ([] for _ in range(7))"
    body = _indent(f"{_TOOLS}\n{lists}\n{inner}\nreturn {changed}")
    return f"def _without(real, main=None):\n{body}\n{names} = _without({names})\ndel _without"


def _indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.strip("\n").split("\n"))
