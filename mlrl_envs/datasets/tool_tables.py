"""Generated tasks over files: tables that are filtered, counted, summed and joined.

Every task has twin files of the same form with another answer, on which programs are checked.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from mlrl_envs.datasets.tool_parts import SIMILAR, plain, programmed
from mlrl_envs.datasets.tool_world import World
from mlrl_envs.tasks import ToolTask

__all__ = ["TABLE_KINDS"]

Files = dict[str, str]
_SPLIT = "rows = [line.split(',') for line in open('{}').read().split()[1:]]\n"


def _task(
    question: str,
    known: tuple[str, str],
    make: Callable[[], tuple[Files, list[float], float]],
    code: str,
) -> ToolTask:
    """Return a task whose files are drawn twice: for the team and as twins.

    Args:
        question: The question.
        known: What `researcher` and `solver` are told.
        make: Draws the files; returns them, the numbers that count, and the answer.
        code: The program of the reference.
    """
    files, needs, answer = make()
    twins, _, twin = make()
    item = programmed(code, tuple(needs), plain(answer))
    return ToolTask(
        "",
        question,
        (("researcher", known[0]), ("solver", known[1])),
        evidence=(replace(item, twin=plain(twin)),),
        answer=plain(answer),
        files=tuple(files.items()),
        twin_files=tuple(twins.items()),
    )


def _table(header: str, rows: Sequence[tuple[object, ...]]) -> str:
    lines = [",".join(map(str, row)) for row in rows]
    return "\n".join([header, *lines]) + "\n"


def orders(world: World, level: int) -> ToolTask:
    """Sum one column of a table over the rows of one customer in one state."""
    house, states = world.name(), ("sent", "held", "returned")
    customers = [world.code("C") for _ in range(SIMILAR + 1)]
    wanted, state = customers[0], world.pick(states)

    def make() -> tuple[Files, list[float], float]:
        cells = [(customer, kind) for customer in customers for kind in states]
        placed = [cell for cell in cells for _ in range(world.integer(2, level + 2))]
        rows = [
            (number, *cell, world.number(11, 95))
            for number, cell in enumerate(world.shuffled(placed), start=1)
        ]
        counted = [boxes for _, *cell, boxes in rows if cell == [wanted, state]]
        files = {"orders.csv": _table("order,customer,state,boxes", rows)}
        return files, [float(n) for n in counted], float(sum(counted))

    code = _SPLIT.format("orders.csv") + (
        f"print(sum(int(r[3]) for r in rows if r[1] == '{wanted}' and r[2] == '{state}'))"
    )
    return _task(
        f"How many boxes of {house} count? The file orders.csv has all orders.",
        (
            f"In the file {house} is customer {wanted}.",
            f"Only orders in the state {state} count.",
        ),
        make,
        code,
    )


def soundings(world: World, level: int) -> ToolTask:
    """Count the rows of a table that fulfil two or three conditions."""
    bay, least, most = world.name(), world.number(15, 55), world.number(40, 55)
    stations = [world.code("P") for _ in range(SIMILAR)]
    wanted = stations[0]

    def make() -> tuple[Files, list[float], float]:
        placed = [station for station in stations for _ in range(16 + 6 * level)]
        rows = [
            (number, station, world.number(11, 95), world.number(11, 60))
            for number, station in enumerate(world.shuffled(placed), start=1)
        ]
        counted = [
            number
            for number, station, depth, wind in rows
            if station == wanted and depth > least and (level < 3 or wind < most)
        ]
        files = {"soundings.csv": _table("number,station,depth,wind", rows)}
        return files, [float(number) for number in counted], float(len(counted))

    test = f"r[1] == '{wanted}' and int(r[2]) > {least}"
    test += f" and int(r[3]) < {most}" if level > 2 else ""
    code = _SPLIT.format("soundings.csv") + f"print(len([r for r in rows if {test}]))"
    also = f" and a wind below {most}" if level > 2 else ""
    return _task(
        f"How many soundings of the bay of {bay} are good? The file soundings.csv has all.",
        (
            f"In the file the bay of {bay} is station {wanted}.",
            f"A sounding is good if it has a depth of more than {least}{also}.",
        ),
        make,
        code,
    )


def tanks(world: World, level: int) -> ToolTask:
    """Compute the worth of the content of one tank, or of two, from their sizes in a file."""
    good, price = world.good(), world.number(11, 90)
    codes = [world.code("T") for _ in range(SIMILAR + 1)]
    wanted = codes[: 1 if level < 3 else 2]
    spilled = world.number(11, 60)

    def make() -> tuple[Files, list[float], float]:
        lines, volume = [], 0.0
        needs: list[float] = []
        for code in codes:
            sizes = (world.half(3, 12), float(world.number(11, 20)), world.half(3, 9))
            long, wide, deep = map(plain, sizes)
            lines.append(f"tank {code}: {long} m long, {wide} m wide, filled to {deep} m\n")
            if code in wanted:
                needs += sizes
                volume += sizes[0] * sizes[1] * sizes[2]
        files = {"tanks.txt": "".join(world.shuffled(lines))}
        lost = [float(spilled)] if level > 1 else []
        return files, [*needs, price, *lost], volume * price - (spilled if level > 1 else 0)

    code = (
        "import re\nvolume = 0\nfor line in open('tanks.txt'):\n"
        f"    if line[5:10] in {wanted}:\n"
        "        sizes = re.findall('[0-9.]+', line[10:])\n"
        "        volume += float(sizes[0]) * float(sizes[1]) * float(sizes[2])\n"
        f"print(volume * {price}{f' - {spilled}' if level > 1 else ''})"
    )
    loss = f" From the worth of all, {spilled} crowns go off for the guard." if level > 1 else ""
    return _task(
        f"What is the {good} in the store worth, in crowns? The file tanks.txt has the sizes of "
        "all tanks, which are boxes.",
        (
            f"The {good} is kept in {' and '.join(f'tank {code}' for code in wanted)}.",
            f"A cubic metre of {good} is worth {price} crowns.{loss}",
        ),
        make,
        code,
    )


def wages(world: World, level: int) -> ToolTask:
    """Join two tables and sum hours times rate over the workers of one crew."""
    gang, bonus = world.name(), world.number(11, 60)
    crews = [world.code("G") for _ in range(SIMILAR + 1)]
    workers = [world.name() for _ in range(5 + level)]
    wanted = crews[0]

    def make() -> tuple[Files, list[float], float]:
        rates = {worker: world.number(11, 40) for worker in workers}
        placed = [crew for crew in crews for _ in range(2 * level + 4)]
        rows = [(world.pick(workers), crew, world.number(3, 60)) for crew in world.shuffled(placed)]
        counted = [(hours, rates[worker]) for worker, crew, hours in rows if crew == wanted]
        total = sum(hours * rate + (bonus if level > 1 else 0) for hours, rate in counted)
        files = {
            "hours.csv": _table("worker,crew,hours", rows),
            "rates.csv": _table("worker,rate", list(rates.items())),
        }
        return files, [float(n) for pair in counted for n in pair], float(total)

    code = (
        _SPLIT.format("rates.csv")
        + "rates = {r[0]: int(r[1]) for r in rows}\n"
        + _SPLIT.format("hours.csv")
        + f"print(sum(int(r[2]) * rates[r[0]]{f' + {bonus}' if level > 1 else ''} "
        + f"for r in rows if r[1] == '{wanted}'))"
    )
    extra = f" Every row also earns a bonus of {bonus} crowns." if level > 1 else ""
    return _task(
        f"What does the crew of {gang} earn, in crowns? The file hours.csv has hours, rates.csv "
        "has crowns an hour.",
        (
            f"In the files the crew of {gang} is crew {wanted}.",
            f"A row of hours.csv earns its hours times the rate of its worker.{extra}",
        ),
        make,
        code,
    )


TABLE_KINDS = {"orders": orders, "soundings": soundings, "tanks": tanks, "wages": wages}
