"""Generated tasks whose answer is a name that several lookups in an archive lead to."""

from mlrl_envs.datasets.tool_parts import SIMILAR, archive_task, document
from mlrl_envs.datasets.tool_world import World
from mlrl_envs.tasks import Document, ToolTask

__all__ = ["LOOKUP_KINDS"]


def mills(world: World, level: int) -> ToolTask:
    """Compare several mills and name the best."""
    names = [world.name() for _ in range(level + 3)]
    found, sacks, days = [], [], []
    for _ in range(len(names) + SIMILAR):
        code, stones, each = world.code("M"), world.number(3, 19), world.number(11, 60)
        text = f"Mill {code} has {stones} stones, and each stone grinds {each} sacks a day."
        found.append(document(code, "Mill", text))
        sacks.append(stones * each)
        days.append(world.number(150, 250))
    totals = [sacks[place] * days[place] for place in range(len(names))]
    if totals.count(max(totals)) > 1:
        return mills(world, level)
    best = names[totals.index(max(totals))]
    codes = ", ".join(f"{n} is mill {d.id.upper()}" for n, d in zip(names, found, strict=False))
    opened = ", ".join(f"{n} was open on {d} days" for n, d in zip(names, days, strict=False))
    return archive_task(
        world,
        f"Which of the mills {', '.join(names)} ground the most sacks in the year?",
        (f"The archive lists mills by number: {codes}.", f"In that year {opened}."),
        (found[: len(names)], found[len(names) :]),
        best,
        rivals=tuple(name for name in names if name != best),
    )


def masters(world: World, level: int) -> ToolTask:
    """Follow a chain of lookups to a person."""
    nouns = ("Foundry", "Guild", "Chamber")[:level]
    tower, chains = world.name(), [_chain(world, nouns) for _ in range(SIMILAR + 1)]
    documents, people, (first, last) = chains[0]
    spans = ((first - 60, first - 1), (first + 1, last - 1), (last + 1, last + 60))
    place = world.integer(0, 2)
    year, bell = world.number(*spans[place]), documents[0].id.upper()
    where = " of the ".join(noun.lower() for noun in reversed(nouns))
    return archive_task(
        world,
        f"Who was master of the {where} when the bell of {tower} was cast? Give the full name.",
        (
            f"The archive lists bells by number; the bell of {tower} is bell {bell}.",
            f"The bell of {tower} was cast in {year}. The archive has the masters of every house.",
        ),
        (documents, [one for others, *_ in chains[1:] for one in others]),
        people[place],
        rivals=tuple(people[:place] + people[place + 1 :]),
    )


def _chain(
    world: World, nouns: tuple[str, ...]
) -> tuple[list[Document], list[str], tuple[int, int]]:
    """Return the documents from a bell to its masters, the masters, and when they changed."""
    bell, links = world.code("B"), [world.name() for _ in nouns]
    texts = [f"Bell {bell} was cast at the foundry {links[0]}."]
    texts += [
        f"The {nouns[i].lower()} {links[i]} belongs to the {nouns[i + 1].lower()} {links[i + 1]}."
        for i in range(len(nouns) - 1)
    ]
    people = [world.person() for _ in range(3)]
    first = world.number(1650, 1750)
    last = world.number(first + 40, first + 80)
    texts.append(
        f"Its masters were {people[0]} until {first}, then {people[1]} until {last}, "
        f"and {people[2]} after that."
    )
    titles = zip((bell, *links), ("Bell", *nouns), texts, strict=True)
    return [document(*parts) for parts in titles], people, (first, last)


LOOKUP_KINDS = {"mills": mills, "masters": masters}
