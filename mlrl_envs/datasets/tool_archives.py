"""Generated tasks over an archive: numbers are looked up in documents and computed with."""

from datetime import date

from mlrl_envs.datasets.tool_parts import (
    SIMILAR,
    archive_task,
    computed,
    document,
    plain,
    programmed,
)
from mlrl_envs.datasets.tool_world import World
from mlrl_envs.tasks import Document, ToolTask

__all__ = ["ARCHIVE_KINDS"]


def cargo(world: World, level: int) -> ToolTask:
    """Look up the crates of a ship and compute their weight."""
    ship, goods = world.name(), [world.good() for _ in range(level)]

    def entry() -> tuple[Document, list[int]]:
        counts = [world.number(20, 180) for _ in goods]
        code = world.code("KX")
        load = " and ".join(f"{n} crates of {g}" for n, g in zip(counts, goods, strict=True))
        text = f"The vessel entered as {code} lies at the quay of {world.name()} with {load}."
        return document(code, "Register entry", text), counts

    wanted, counts = entry()
    weights = [world.half(10, 90) for _ in goods]
    total = sum(n * w for n, w in zip(counts, weights, strict=True))
    told = ", ".join(f"a crate of {g} weighs {w} kg" for g, w in zip(goods, weights, strict=True))
    expression = " + ".join(f"{n} * {w}" for n, w in zip(counts, weights, strict=True))
    code = wanted.id.upper()
    return archive_task(
        world,
        f"What does the whole cargo of the ship {ship} weigh, in kilograms?",
        (
            f"The archive never names ships. The {ship} is the vessel entered as {code}.",
            f"In this harbour {told}. How many crates the {ship} carries is in the archive.",
        ),
        ([wanted], [entry()[0] for _ in range(SIMILAR)]),
        plain(total),
        result=computed(expression, (*counts, *weights), plain(total)),
    )


def roads(world: World, level: int) -> ToolTask:
    """Convert a length in an invented unit to a time."""
    town, unit = world.name(), world.name().lower() + "s"
    documents = []
    for _ in range(SIMILAR + 1):
        code, length, inns = world.code("R"), world.number(21, 95), world.number(3, 30)
        text = f"Road {code} is {length} {unit} long and passes {inns} inns."
        documents.append((document(code, "Road", text), length, inns))
    road, length, inns = documents[0]
    metres, pace = world.half(2, 20), world.number(11, 90)
    wagons = []
    for _ in range(3):
        code, minutes = world.code("W"), world.number(11, 90)
        text = f"Wagon {code} takes {minutes} minutes for a kilometre."
        wagons.append((document(code, "Wagon", text), minutes))
    rest = world.number(11, 40)
    wagon, minutes = wagons[0]
    pace = minutes if level > 1 else pace
    total = length * metres * pace + (inns * rest if level > 2 else 0)
    expression = f"{length} * {metres} * {pace}" + (f" + {inns} * {rest}" if level > 2 else "")
    needs = (length, metres, pace, *((inns, rest) if level > 2 else ()))
    told = f"The road to {town} is road {road.id.upper()} in the archive."
    if level > 1:
        told += f" The wagon is wagon {wagon.id.upper()}, whose pace is in the archive too."
    known = f"Of the old unit, one of the {unit} is {metres} kilometres."
    known += f" The wagon takes {pace} minutes for a kilometre." if level == 1 else ""
    known += f" It rests {rest} minutes at every inn." if level > 2 else ""
    needed, others = [road], [d for d, *_ in documents[1:]]
    (needed if level > 1 else others).append(wagon)
    return archive_task(
        world,
        f"How many minutes does the wagon take for the whole road to {town}?",
        (told, known),
        (needed, [*others, *(d for d, _ in wagons[1:])]),
        plain(total),
        result=computed(expression, needs, plain(total)),
    )


def ships(world: World, level: int) -> ToolTask:
    """Count the days between two dates."""
    ship, closed, wage = world.name(), world.number(11, 60), world.number(11, 90)

    def day(first: int) -> date:
        month, number = world.integer(1, 12), world.integer(1, 28)
        return date(world.number(first, first + 40), month, number)

    def entry() -> tuple[list[Document], date, date]:
        begun = day(world.integer(1700, 1860))
        done = day(begun.year + 1)
        keel, launch = world.code("Y"), world.code("L")
        laid = f"The keel of hull {keel} was laid on {begun}."
        left = f"launched on {done}."
        if level == 1:
            return [document(keel, "Hull", f"{laid} It was {left}")], begun, done
        text = f"The hull of launch {launch} was {left}"
        return [document(keel, "Hull", laid), document(launch, "Launch", text)], begun, done

    wanted, begun, done = entry()
    worked = (done - begun).days - closed
    total = worked * wage if level > 2 else worked
    code = (
        "from datetime import date\n"
        f"days = (date({done.year}, {done.month}, {done.day}) - "
        f"date({begun.year}, {begun.month}, {begun.day})).days - {closed}\n"
        f"print(days{f' * {wage}' if level > 2 else ''})"
    )
    asked = f"How many days did the yard work on the ship {ship}, from keel to launch?"
    if level > 2:
        asked = f"What did the work on the ship {ship} cost from keel to launch, in crowns?"
    told = " and ".join(f"{d.title.split()[0].lower()} {d.id.upper()}" for d in wanted)
    known = (
        "Count the days from keel to launch, as the difference of the two dates, less "
        f"{closed} days on which the yard was closed."
    )
    known += f" A day of work cost {wage} crowns." if level > 2 else ""
    return archive_task(
        world,
        asked,
        (f"The archive lists the {ship} as {told}.", known),
        (wanted, [d for _ in range(SIMILAR) for d in entry()[0]]),
        plain(total),
        result=programmed(code, (begun.year, done.year), plain(total)),
    )


def lights(world: World, level: int) -> ToolTask:
    """Run a recurrence for many steps."""
    light, night = world.name(), world.number(90, 400)

    def entry() -> tuple[list[Document], tuple[int, ...]]:
        code, rule = world.code("L"), world.code("S")
        start, factor, shift = world.number(11, 60), world.number(3, 19), world.number(20, 90)
        modulus = world.number(1100, 3000)
        begins = f"The signal of light {code} is {start} on night 1."
        goes = (
            f"From one night to the next the signal is multiplied by {factor}, then {shift} is "
            f"added, and the remainder of dividing by {modulus} is shown."
        )
        numbers = (start, factor, shift, modulus)
        if level == 1:
            return [document(code, "Light", f"{begins} {goes}")], numbers
        first = document(code, "Light", f"{begins} It follows rule {rule}.")
        return [first, document(rule, "Rule", goes)], numbers

    wanted, (start, factor, shift, modulus) = entry()
    signals = [start]
    while len(signals) < night:
        signals.append((signals[-1] * factor + shift) % modulus)
    total = sum(signals) if level > 2 else signals[-1]
    code = (
        f"signals = [{start}]\nfor _ in range({night} - 1):\n"
        f"    signals.append((signals[-1] * {factor} + {shift}) % {modulus})\n"
        f"print({'sum(signals)' if level > 2 else 'signals[-1]'})"
    )
    asked = f"Which signal does the light {light} show on the night the keeper asks about?"
    if level > 2:
        asked = f"What is the sum of the signals of the light {light} up to the night in question?"
    rule = f", which follows rule {wanted[1].id.upper()}" if level > 1 else ""
    return archive_task(
        world,
        asked,
        (
            f"The archive lists the light {light} as light {wanted[0].id.upper()}{rule}.",
            f"The keeper asks about night {night}; night 1 is the first.",
        ),
        (wanted, [d for _ in range(SIMILAR) for d in entry()[0]]),
        plain(total),
        result=programmed(code, (start, factor, shift, modulus), plain(total)),
    )


ARCHIVE_KINDS = {
    "cargo": cargo,
    "roads": roads,
    "ships": ships,
    "lights": lights,
}
