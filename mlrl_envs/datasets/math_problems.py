"""Math problems generated from a seed: arithmetic, algebra, word problems, inequalities and more.

A problem is a pure function of its key (topic, level, split, seed, number), equal in every process
and every version of Python. A hash of the calculations decides the split, so that no problem of
`eval` is one of `train` about other things, with another letter or with exchanged operands. Every
answer is above nine or below minus nine and does not occur in the question, so that neither a
constant nor a copied number is right.
"""

from collections.abc import Sequence
from fractions import Fraction

from mlrl_envs.datasets.draws import Draws
from mlrl_envs.datasets.made_splits import in_eval
from mlrl_envs.datasets.math_inequalities import inequality
from mlrl_envs.datasets.math_parts import Problem, Template, equation
from mlrl_envs.parsing.numbers import format_number
from mlrl_envs.tasks import MathTask

__all__ = ["DEFAULT_TOPICS", "LEVELS", "TOPICS", "calculations", "make_problem", "make_problems"]

LEVELS = (1, 2, 3)
SMALL = 9  # smaller answers are too easy to guess

_NAMES = ("Ada", "Ben", "Chidi", "Dana", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jomo", "Kira")
_THINGS = ("apples", "stickers", "marbles", "stamps", "shells", "pencils", "cards", "buttons")
_SHOPS = (
    ("bakery", "loaves"),
    ("nursery", "seedlings"),
    ("pottery", "bowls"),
    ("dairy", "cheeses"),
    ("workshop", "chairs"),
)


def make_problems(
    split: str, *, size: int, seed: int, topics: Sequence[str], levels: Sequence[int]
) -> tuple[MathTask, ...]:
    """Return the first problems of a split.

    Args:
        split: `"train"` or `"eval"`.
        size: Number of problems.
        seed: Seed of the problems.
        topics: Some of `TOPICS`, used in turn.
        levels: Some of `LEVELS`, used in turn.
    """
    kinds = [(topic, level) for level in levels for topic in topics]
    found: dict[str, MathTask] = {}
    number = 0
    while len(found) < size:
        topic, level = kinds[len(found) % len(kinds)]
        task = make_problem(split, seed=seed, number=number, topic=topic, level=level)
        number += 1
        if task is not None:
            found.setdefault(task.question, task)
    return tuple(found.values())


def make_problem(split: str, *, seed: int, number: int, topic: str, level: int) -> MathTask | None:
    """Return one problem, or None if its key gives an unfair one or one of another split."""
    task_id = f"math/{topic}/{level}/{split}/{seed}/{number}"
    problem = TOPICS[topic](Draws(task_id), level)
    if not _is_fair(problem) or in_eval(calculations(problem.steps)) != (split == "eval"):
        return None
    return MathTask(
        task_id, problem.question, format_number(problem.answer), "\n".join(problem.steps)
    )


def calculations(steps: Sequence[str]) -> str:
    """Return the steps of a solution in a form that is equal for `12 + 30` and `30 + 12`."""
    return "\n".join(" ".join(sorted(step.split())) for step in steps)


def _is_fair(problem: Problem) -> bool:
    return (
        abs(problem.answer) > SMALL and format_number(abs(problem.answer)) not in problem.question
    )


def _arithmetic(draws: Draws, level: int) -> Problem:
    if level == 1:
        a, b, sign = draws.integer(12, 99), draws.integer(12, 99), draws.pick("+-*")
        value = {"+": a + b, "-": a - b, "*": a * b}[sign]
        return Problem(f"What is {a} {sign} {b}?", (equation(f"{a} {sign} {b}", value),), _f(value))
    if level == 2:
        a, b, c = draws.integer(3, 19), draws.integer(12, 60), draws.integer(15, 250)
        sign = draws.pick("+-")
        value = a * b + c if sign == "+" else a * b - c
        steps = (equation(f"{a} * {b}", a * b), equation(f"{a * b} {sign} {c}", value))
        return Problem(f"What is {a} * {b} {sign} {c}?", steps, _f(value))
    return draws.pick((_brackets, _fractions, _percentage))(draws)


def _brackets(draws: Draws) -> Problem:
    a, b, c = (draws.integer(11, 49) for _ in range(3))
    d, e = draws.integer(3, 12), draws.integer(4, 20)
    steps = (
        equation(f"{a} + {b}", a + b),
        equation(f"{a + b} * {c}", (a + b) * c),
        equation(f"{d * e} / {e}", d),
        equation(f"{(a + b) * c} - {d}", (a + b) * c - d),
    )
    return Problem(f"What is ({a} + {b}) * {c} - {d * e} / {e}?", steps, _f((a + b) * c - d))


def _fractions(draws: Draws) -> Problem:
    below, other = draws.pick_two((2, 3, 4, 5, 6, 8))
    above, beside = draws.integer(19, 71), draws.integer(11, 47)
    value = Fraction(above, below) + Fraction(beside, other)
    joined, common = above * other + beside * below, below * other
    steps = (
        equation(f"{above} * {other}", above * other),
        equation(f"{beside} * {below}", beside * below),
        equation(f"{above * other} + {beside * below}", joined),
        equation(f"{below} * {other}", common),
        equation(f"{joined} / {common}", value),
    )
    question = f"What is {above}/{below} + {beside}/{other}? Give a fraction or a decimal."
    return Problem(question, steps, value)


def _percentage(draws: Draws) -> Problem:
    percent, whole = draws.pick((4, 6, 8, 12, 15, 35, 45, 65)), 20 * draws.integer(7, 60)
    value = Fraction(percent * whole, 100)
    steps = (
        equation(f"{percent} * {whole}", percent * whole),
        equation(f"{percent * whole} / 100", value),
    )
    return Problem(f"What is {percent}% of {whole}?", steps, value)


def _algebra(draws: Draws, level: int) -> Problem:
    name = draws.pick("xyznkm")
    root = draws.integer(10, 70) * (1 if level == 1 or draws.integer(0, 2) else -1)
    if level == 1:
        shift = draws.integer(11, 90)
        steps = (equation(f"{root + shift} - {shift}", root),)
        return Problem(f"Solve for {name}: {name} + {shift} = {root + shift}", steps, _f(root))
    factor, shift = draws.integer(3, 15), draws.integer(4, 60)
    if level == 3:
        return _both_sides(name, root, factor, draws.integer(2, factor - 1), shift)
    product = factor * root
    right = product + shift
    question = f"Solve for {name}: {factor}{name} + {shift} = {right}"
    lines = (equation(f"{right} - {shift}", product), equation(f"{product} / {factor}", root))
    return Problem(question, lines, _f(root))


def _both_sides(name: str, root: int, factor: int, other: int, shift: int) -> Problem:
    right = factor * (root + shift) - other * root
    gap, product = factor - other, factor * shift
    steps = (
        equation(f"{factor} * {shift}", product),
        equation(f"{factor} - {other}", gap),
        equation(f"{right} - {product}", right - product),
        equation(f"{right - product} / {gap}", root),
    )
    sign = "+" if right >= 0 else "-"
    question = f"Solve for {name}: {factor}({name} + {shift}) = {other}{name} {sign} {abs(right)}"
    return Problem(question, steps, _f(root))


def _word(draws: Draws, level: int) -> Problem:
    name, friend = draws.pick_two(_NAMES)
    things = draws.pick(_THINGS)
    if level == 1:
        boxes, each = draws.integer(6, 24), draws.integer(6, 30)
        question = (
            f"{name} has {boxes} boxes with {each} {things} in each box. How many {things} is that?"
        )
        return Problem(question, (equation(f"{boxes} * {each}", boxes * each),), _f(boxes * each))
    if level == 2:
        return _bought(draws, name, friend, things)
    return draws.pick((_sale, _speed, _shared))(draws, name, friend, things)


def _bought(draws: Draws, name: str, friend: str, things: str) -> Problem:
    packs, size = draws.integer(4, 16), draws.integer(6, 24)
    given = draws.integer(5, packs * size - 5)
    question = (
        f"{name} buys {packs} packs of {things} with {size} in each pack and gives {given} of the "
        f"{things} to {friend}. How many {things} does {name} have left?"
    )
    total = packs * size
    steps = (equation(f"{packs} * {size}", total), equation(f"{total} - {given}", total - given))
    return Problem(question, steps, _f(total - given))


def _sale(draws: Draws, name: str, friend: str, things: str) -> Problem:  # noqa: ARG001  one form
    price, off = 4 * draws.integer(6, 45), draws.pick((10, 15, 20, 25, 30, 40))
    count = draws.integer(3, 9)
    saved = Fraction(price * off, 100)
    question = (
        f"A coat costs {price} dollars. In a sale it is {off}% cheaper. {name} buys {count} coats "
        f"in the sale. How many dollars does {name} pay?"
    )
    steps = (
        equation(f"{price} * {off}", price * off),
        equation(f"{price * off} / 100", saved),
        equation(f"{price} - {format_number(saved)}", price - saved),
        equation(f"{format_number(price - saved)} * {count}", (price - saved) * count),
    )
    return Problem(question, steps, (price - saved) * count)


def _speed(draws: Draws, name: str, friend: str, things: str) -> Problem:  # noqa: ARG001  one form
    fast, slow = draws.integer(14, 28), draws.integer(4, 12)
    hours = draws.integer(2, 9)
    question = (
        f"{name} cycles at {fast} km per hour and {friend} walks the same road at {slow} km per "
        f"hour. They start together. How many km is {name} ahead after {hours} hours?"
    )
    gap = fast - slow
    steps = (equation(f"{fast} - {slow}", gap), equation(f"{gap} * {hours}", gap * hours))
    return Problem(question, steps, _f(gap * hours))


def _shared(draws: Draws, name: str, friend: str, things: str) -> Problem:
    own, more = draws.integer(15, 80), 2 * draws.integer(3, 30)
    question = (
        f"{friend} has {more} {things} more than {name}, who has {own}. They put all of them "
        f"together and share them equally. How many {things} does each of them get?"
    )
    total = 2 * own + more
    steps = (
        equation(f"{own} + {more}", own + more),
        equation(f"{own} + {own + more}", total),
        equation(f"{total} / 2", Fraction(total, 2)),
    )
    return Problem(question, steps, Fraction(total, 2))


def _multistep(draws: Draws, level: int) -> Problem:
    shop, goods = draws.pick(_SHOPS)
    stock = draws.integer(30, 90)
    lines, steps = [f"A {shop} has {stock} {goods} on Monday morning."], []
    for number in range(level + 1):
        line, step, stock = _EVENTS[(number + draws.integer(0, 1)) % len(_EVENTS)](
            draws, goods, stock
        )
        lines.append(line)
        steps.append(step)
    lines.append(f"How many {goods} does the {shop} have in the end?")
    return Problem(" ".join(lines), tuple(steps), _f(stock))


def _made(draws: Draws, goods: str, stock: int) -> tuple[str, str, int]:
    made = draws.integer(12, 70)
    return (
        f"Then it makes {made} more {goods}.",
        equation(f"{stock} + {made}", stock + made),
        stock + made,
    )


def _sold(draws: Draws, goods: str, stock: int) -> tuple[str, str, int]:
    sold = draws.integer(3, max(3, stock // 2))
    return (
        f"Then it sells {sold} {goods}.",
        equation(f"{stock} - {sold}", stock - sold),
        stock - sold,
    )


def _multiplied(draws: Draws, goods: str, stock: int) -> tuple[str, str, int]:
    times = draws.integer(2, 5)
    line = f"Then a delivery makes its number of {goods} {times} times as large."
    return line, equation(f"{stock} * {times}", stock * times), stock * times


_EVENTS = (_made, _sold, _multiplied)


def _f(value: int) -> Fraction:
    return Fraction(value)


TOPICS: dict[str, Template] = {
    "arithmetic": _arithmetic,
    "algebra": _algebra,
    "word": _word,
    "multistep": _multistep,
    "inequality": inequality,
}
DEFAULT_TOPICS = ("arithmetic", "algebra", "word", "multistep")
"""Topics of the suites; a further one would change their problems."""
