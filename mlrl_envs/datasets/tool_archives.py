"""Generated tasks over an archive: the information is spread over documents that are searched."""

import json
from datetime import date

from mlrl_envs.datasets.tool_world import World
from mlrl_envs.parsing.numbers import format_number
from mlrl_envs.parsing.numbers import read_number as _number
from mlrl_envs.tasks import Document, ToolEvidence, ToolTask

__all__ = ["ARCHIVE_KINDS", "briefs", "plain"]

SIMILAR = 6  # documents of the same form about other things


def briefs(researcher: str, solver: str) -> tuple[tuple[str, str], ...]:
    """Return what each agent is told alone."""
    return (("researcher", researcher), ("solver", solver))


def plain(value: float) -> str:
    """Format a number as in an answer: without an exponent and trailing zeros."""
    exact = _number(f"{value:.6f}")
    assert exact is not None  # noqa: S101  written in this line
    return format_number(exact)


def _document(code: str, noun: str, text: str) -> Document:
    return Document(code.lower(), f"{noun} {code}", text)


def _found(document: Document, agent: str = "researcher") -> ToolEvidence:
    query = json.dumps({"query": document.title})
    return ToolEvidence(agent, "search", query, (), document.id)


def _computed(expression: str, needs: tuple[float, ...], answer: str) -> ToolEvidence:
    parameters = json.dumps({"expression": expression})
    return ToolEvidence("solver", "calculator", parameters, tuple(map(plain, needs)), answer)


def _programmed(code: str, needs: tuple[float, ...], answer: str) -> ToolEvidence:
    parameters = json.dumps({"code": code})
    return ToolEvidence("solver", "python", parameters, tuple(map(plain, needs)), answer)


def _mixed(world: World, documents: list[Document]) -> tuple[Document, ...]:
    by_id = {document.id: document for document in documents}
    return tuple(by_id[key] for key in world.shuffled(list(by_id)))


def cargo(world: World, level: int) -> ToolTask:
    """Look up the crates of a ship and compute their weight."""
    ship, goods = world.name(), [world.good() for _ in range(level)]

    def entry() -> tuple[Document, list[int]]:
        counts = [world.number(20, 180) for _ in goods]
        code = world.code("KX")
        load = " and ".join(f"{n} crates of {g}" for n, g in zip(counts, goods, strict=True))
        text = f"The vessel entered as {code} lies at the quay of {world.name()} with {load}."
        return _document(code, "Register entry", text), counts

    wanted, counts = entry()
    weights = [world.half(10, 90) for _ in goods]
    total = sum(n * w for n, w in zip(counts, weights, strict=True))
    told = ", ".join(f"a crate of {g} weighs {w} kg" for g, w in zip(goods, weights, strict=True))
    expression = " + ".join(f"{n} * {w}" for n, w in zip(counts, weights, strict=True))
    code = wanted.id.upper()
    return ToolTask(
        "",
        f"What does the whole cargo of the ship {ship} weigh, in kilograms?",
        briefs(
            f"The archive never names ships. The {ship} is the vessel entered as {code}.",
            f"In this harbour {told}. How many crates the {ship} carries is in the archive.",
        ),
        documents=_mixed(world, [wanted, *(entry()[0] for _ in range(SIMILAR))]),
        evidence=(_found(wanted), _computed(expression, (*counts, *weights), plain(total))),
        answer=plain(total),
    )


def mills(world: World, level: int) -> ToolTask:
    """Compare several mills and name the best."""
    names = [world.name() for _ in range(level + 2)]
    found, sacks, days = [], [], []
    for _ in range(len(names) + SIMILAR):
        code, stones, each = world.code("M"), world.number(3, 19), world.number(11, 60)
        text = f"Mill {code} has {stones} stones, and each stone grinds {each} sacks a day."
        found.append(_document(code, "Mill", text))
        sacks.append(stones * each)
        days.append(world.number(30, 200))
    totals = [sacks[place] * days[place] for place in range(len(names))]
    best = names[totals.index(max(totals))]
    codes = ", ".join(f"{n} is mill {d.id.upper()}" for n, d in zip(names, found, strict=False))
    opened = ", ".join(f"{n} was open on {d} days" for n, d in zip(names, days, strict=False))
    return ToolTask(
        "",
        f"Which of the mills {', '.join(names)} ground the most sacks in the year?",
        briefs(f"The archive lists mills by number: {codes}.", f"In that year {opened}."),
        documents=_mixed(world, found),
        evidence=tuple(
            _found(document, ("researcher", "solver")[place % 2])
            for place, document in enumerate(found[: len(names)])
        ),
        answer=best,
        rivals=tuple(name for name in names if name != best),
    )


def masters(world: World, level: int) -> ToolTask:
    """Follow a chain of lookups to a person."""
    tower, bell = world.name(), world.code("B")
    links = [world.name() for _ in range(level)]
    nouns = ("Foundry", "Guild", "Chamber")[:level]
    first = f"Bell {bell} was cast at the foundry {links[0]}."
    chain = [_document(bell, "Bell", first)]
    for place in range(level - 1):
        below, above = nouns[place], nouns[place + 1]
        text = (
            f"The {below.lower()} {links[place]} belongs to the {above.lower()} {links[place + 1]}."
        )
        chain.append(_document(links[place], nouns[place], text))
    people = [world.person() for _ in range(3)]
    first_year = world.number(1650, 1750)
    year = world.number(first_year + 1, first_year + 60)
    last_year = world.number(year + 1, year + 60)
    text = (
        f"Its masters were {people[0]} until {first_year}, then {people[1]} until {last_year}, "
        f"and {people[2]} after that."
    )
    chain.append(_document(links[-1], nouns[-1], text))
    others = []
    for _ in range(SIMILAR):
        code = world.code("B")
        text = f"Bell {code} was cast at the foundry {world.name()}."
        others.append(_document(code, "Bell", text))
    where = " of the ".join(noun.lower() for noun in reversed(nouns))
    return ToolTask(
        "",
        f"Who was master of the {where} when the bell of {tower} was cast? Give the full name.",
        briefs(
            f"The archive lists bells by number; the bell of {tower} is bell {bell}.",
            f"The bell of {tower} was cast in {year}. The archive has the masters of every house.",
        ),
        documents=_mixed(world, [*chain, *others]),
        evidence=tuple(
            _found(document, "solver" if place else "researcher")
            for place, document in enumerate(chain)
        ),
        answer=people[1],
        rivals=(people[0], people[2]),
    )


def roads(world: World, level: int) -> ToolTask:
    """Convert a length in an invented unit to a time."""
    town, unit = world.name(), world.name().lower() + "s"
    documents = []
    for _ in range(SIMILAR + 1):
        code, length, inns = world.code("R"), world.number(21, 95), world.number(3, 30)
        text = f"Road {code} is {length} {unit} long and passes {inns} inns."
        documents.append((_document(code, "Road", text), length, inns))
    road, length, inns = documents[0]
    metres, pace = world.half(2, 20), world.number(11, 90)
    wagons = []
    for _ in range(3):
        code, minutes = world.code("W"), world.number(11, 90)
        text = f"Wagon {code} takes {minutes} minutes for a kilometre."
        wagons.append((_document(code, "Wagon", text), minutes))
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
    return ToolTask(
        "",
        f"How many minutes does the wagon take for the whole road to {town}?",
        briefs(told, known),
        documents=_mixed(world, [*(d for d, *_ in documents), *(d for d, _ in wagons)]),
        evidence=(
            _found(road),
            *((_found(wagon),) if level > 1 else ()),
            _computed(expression, needs, plain(total)),
        ),
        answer=plain(total),
    )


def ships(world: World, level: int) -> ToolTask:
    """Count the days between two dates."""
    ship, closed, wage = world.name(), world.number(11, 60), world.number(11, 90)

    def day(first: int) -> date:
        month, number = world.draws.integer(1, 12), world.draws.integer(1, 28)
        return date(world.number(first, first + 40), month, number)

    def entry() -> tuple[list[Document], date, date]:
        begun = day(world.draws.integer(1700, 1860))
        done = day(begun.year + 1)
        keel, launch = world.code("Y"), world.code("L")
        laid = f"The keel of hull {keel} was laid on {begun}."
        left = f"launched on {done}."
        if level == 1:
            return [_document(keel, "Hull", f"{laid} It was {left}")], begun, done
        text = f"The hull of launch {launch} was {left}"
        return [_document(keel, "Hull", laid), _document(launch, "Launch", text)], begun, done

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
    return ToolTask(
        "",
        asked,
        briefs(f"The archive lists the {ship} as {told}.", known),
        documents=_mixed(world, [*wanted, *(d for _ in range(SIMILAR) for d in entry()[0])]),
        evidence=(
            *map(_found, wanted),
            _programmed(code, (begun.year, done.year), plain(total)),
        ),
        answer=plain(total),
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
            return [_document(code, "Light", f"{begins} {goes}")], numbers
        first = _document(code, "Light", f"{begins} It follows rule {rule}.")
        return [first, _document(rule, "Rule", goes)], numbers

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
    return ToolTask(
        "",
        asked,
        briefs(
            f"The archive lists the light {light} as light {wanted[0].id.upper()}{rule}.",
            f"The keeper asks about night {night}; night 1 is the first.",
        ),
        documents=_mixed(world, [*wanted, *(d for _ in range(SIMILAR) for d in entry()[0])]),
        evidence=(
            *map(_found, wanted),
            _programmed(code, (start, factor, shift, modulus), plain(total)),
        ),
        answer=plain(total),
    )


ARCHIVE_KINDS = {
    "cargo": cargo,
    "mills": mills,
    "masters": masters,
    "roads": roads,
    "ships": ships,
    "lights": lights,
}
