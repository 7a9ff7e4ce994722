"""Comparison of two results on the tasks that both have played, within the same budget."""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_learners.bench.suite import has_common_scale
from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.comparisons import (
    mean_interval,
    paired_p_value,
    probability_interval,
    probability_of_improvement,
)
from mlrl_learners.figures.means import mean

__all__ = ["compare"]

SPENT_ALIKE = 1.1
"""Largest ratio of tokens per episode that needs no warning."""

SCALED = ("first_mean", "second_mean", "difference", "difference_interval", "p_value")
"""Figures that mix the scales of several entries."""

Result = Mapping[str, Any]
Table = list[list[float]]


def compare(ours: Result, theirs: Result, *, allow_unequal: bool = False) -> dict[str, Any]:
    """Compare two results on the tasks that both have played.

    Args:
        ours: The first result, as `read_result` returns it.
        theirs: The second result.
        allow_unequal: Compare results with different budgets and name the budgets in `warnings`.

    Returns:
        For each shared entry and overall: both means, their difference with a 95 % interval, the
        probability that the first improves on the second with its interval, and the p-value of a
        paired permutation test. Of several entries without a common scale of returns, only the
        probability is not None in `overall`. For games also `measures`, by name the value of both.
        `warnings` names differences that may explain the outcome.

    Raises:
        ConfigError: If no entry is shared, data differ, or budgets differ and `allow_unequal` is
            false.
    """
    mine = {entry["name"]: entry for entry in ours["entries"] if entry["episodes"]}
    yours = {entry["name"]: entry for entry in theirs["entries"] if entry["episodes"]}
    shared = [name for name in mine if name in yours]
    if not shared:
        raise ConfigError(
            f"nothing to compare: one has played {', '.join(mine) or 'nothing'}, "
            f"the other {', '.join(yours) or 'nothing'}"
        )
    warnings = _warnings(ours, theirs)
    rows, tables = [], []
    for name in shared:
        warnings += _checked(mine[name], yours[name], allow_unequal=allow_unequal)
        table = _aligned(mine[name], yours[name])
        tables.append(table)
        measures = _measures(mine[name], yours[name])
        rows.append({"entry": name, **_row([table]), **measures})
    return {
        "first": ours["actor"]["name"],
        "second": theirs["actor"]["name"],
        "entries": rows,
        "overall": _overall(tables, (ours["suite"], theirs["suite"])),
        "warnings": warnings,
    }


def _checked(mine: Result, yours: Result, *, allow_unequal: bool) -> list[str]:
    """Return warnings about two entries that can be compared although they differ."""
    name = mine["name"]
    for key in ("env", "split", "data"):
        if mine[key] != yours[key]:
            raise ConfigError(f"{name}: other {key}: {mine[key]!r} and {yours[key]!r}")
    warnings = []
    for key in ("budget", "options"):
        if mine[key] != yours[key]:
            message = f"{name}: unequal {key}: {mine[key]} and {yours[key]}"
            if not allow_unequal:
                raise ConfigError(f"{message}; --allow-unequal compares them all the same")
            warnings.append(message)
    if mine["scorers"] != yours["scorers"]:
        warnings.append(f"{name}: scored by other code; mlrl rescore tells whether it matters")
    spent = [entry["tokens"] / entry["episodes"] for entry in (mine, yours)]
    if max(spent) > SPENT_ALIKE * max(min(spent), 1e-9):
        warnings.append(f"{name}: {spent[0]:.0f} tokens an episode against {spent[1]:.0f}")
    alone = len(set(mine["returns"]) ^ set(yours["returns"]))
    if alone:
        warnings.append(f"{name}: {alone} tasks that only one has played are left out")
    return warnings


def _measures(mine: Result, yours: Result) -> dict[str, dict[str, list[float]]]:
    """Return the measures of a game that both results have."""
    first, second = (each.get("measures", {"figures": {}})["figures"] for each in (mine, yours))
    shared = {name: [first[name], second[name]] for name in first if name in second}
    return {"measures": shared} if shared else {}


def _warnings(ours: Result, theirs: Result) -> list[str]:
    found = [
        f"{result['actor']['name']}: the run is not complete"
        for result in (ours, theirs)
        if not result["complete"]
    ]
    suites = [f"{r['suite']['name']} v{r['suite']['version']}" for r in (ours, theirs)]
    if suites[0] != suites[1]:
        found.append(f"other suites: {suites[0]} and {suites[1]}")
    return found


def _aligned(mine: Result, yours: Result) -> tuple[Table, Table]:
    """Return the values of each shared task, one per seed, for both results."""
    tasks = [task for task in mine["returns"] if task in yours["returns"]]
    if not tasks:
        raise ConfigError(f"{mine['name']}: no task in common")
    first, second = (
        [[mean(values) for values in entry["returns"][task].values()] for task in tasks]
        for entry in (mine, yours)
    )
    return first, second


def _overall(tables: list[tuple[Table, Table]], suites: Sequence[Result]) -> dict[str, Any]:
    row = _row(tables)
    return (
        row
        if len(tables) == 1 or all(map(has_common_scale, suites))
        else {**row, **dict.fromkeys(SCALED)}
    )


def _row(tables: list[tuple[Table, Table]]) -> dict[str, Any]:
    """Return the comparison of some entries, each with the same weight."""
    means = [([mean(v) for v in mine], [mean(v) for v in yours]) for mine, yours in tables]
    gaps = [[a - b for a, b in zip(x, y, strict=True)] for x, y in means]
    return {
        "tasks": sum(len(mine) for mine, _ in tables),
        "first_mean": mean([mean(x) for x, _ in means]),
        "second_mean": mean([mean(y) for _, y in means]),
        "difference": mean([mean(each) for each in gaps]),
        "difference_interval": mean_interval(gaps),
        "probability_of_improvement": mean([probability_of_improvement(*each) for each in tables]),
        "probability_interval": probability_interval(tables),
        "p_value": paired_p_value([x for x, _ in means], [y for _, y in means]),
    }
