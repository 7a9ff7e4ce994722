"""Packages and megabytes that each extra adds to the base installation.

    python -m benchmarks.extras [--json]

Reads the metadata of the packages that are installed here; extras that are not are left out. A
package that several extras bring is counted in each. Sizes are those of the installed files,
without compiled bytecode.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["closure", "main", "rows"]

PACKAGE = "mlrl"
LEFT_OUT = frozenset({"all", "demo", "dev", "docs"})  # sets of other extras, and what builds mlrl


def closure(requirements: Sequence[str]) -> dict[str, Distribution]:
    """Return what requirements install, by canonical name, without what is not installed here.

    Args:
        requirements: Requirements as in `pyproject.toml`, without a marker of an extra.
    """
    found: dict[str, Distribution] = {}
    waiting = list(requirements)
    asked: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        wanted = Requirement(waiting.pop())
        name = canonicalize_name(wanted.name)
        key = name, frozenset(wanted.extras)
        if key in asked or name == PACKAGE:
            continue
        asked.add(key)
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        for extra in ("", *wanted.extras):
            waiting += _requirements(found[name], extra)
    return found


def _requirements(package: Distribution, extra: str) -> Iterator[str]:
    """Yield what a package needs with an extra, on this machine."""
    for line in package.requires or ():
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
            wanted.marker = None
            yield str(wanted)


def _megabytes(package: Distribution) -> float:
    files = [Path(str(file.locate())) for file in package.files or () if file.suffix != ".pyc"]
    return sum(file.stat().st_size for file in files if file.exists()) / 1e6


def rows() -> list[dict[str, Any]]:
    """Return a row for the base and for each extra: packages and megabytes beyond the base."""
    ours = distribution(PACKAGE)
    base = closure(list(_requirements(ours, "")))
    sizes = {name: _megabytes(package) for name, package in base.items()}
    found = [{"extra": "", "packages": len(base), "megabytes": round(sum(sizes.values()), 1)}]
    extras = ours.metadata.get_all("Provides-Extra") or []
    for extra in sorted(set(extras) - LEFT_OUT):
        added = closure(list(_requirements(ours, extra)))
        new = {name: package for name, package in added.items() if name not in base}
        if not new:  # not installed here
            continue
        size = sum(map(_megabytes, new.values()))
        found.append({"extra": extra, "packages": len(new), "megabytes": round(size, 1)})
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.extras", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    given = parser.parse_args(arguments)
    found = rows()
    if given.json:
        print(json.dumps(found))
        return 0
    print("| extra | packages | MB |\n|---|---|---|")
    for row in found:
        name = f"`{row['extra']}`" if row["extra"] else "none"
        print(f"| {name} | {row['packages']} | {row['megabytes']:,.0f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
