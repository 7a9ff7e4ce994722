"""Query parameters of a page, and the run, index and path that they name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlrl_learners.monitor.index import EpisodeIndex
from mlrl_learners.monitor.library import Library, MonitoredRun
from mlrl_learners.monitor.query import Query

__all__ = [
    "NotThereError",
    "NotYetError",
    "PageRequest",
    "count_of",
    "index_of",
    "path_of",
    "run_of",
]


class NotThereError(Exception):
    """The requested run or episode does not exist; the message says what to do."""


class NotYetError(Exception):
    """What was requested may be in the part of a file that is still being read."""


@dataclass(frozen=True)
class PageRequest:
    """Query parameters of a page.

    Attributes:
        words: Name -> last value.
        runs: All values of `run`.
    """

    words: Mapping[str, str]
    runs: Sequence[str] = field(default_factory=tuple)


def run_of(library: Library, request: PageRequest) -> MonitoredRun:
    """Return the requested run; raise `NotThereError` if there is none."""
    name = request.words.get("run", "")
    run = library.get(name)
    if run is None:
        raise NotThereError(f"There is no run {name!r} below {library.root}.")
    return run


def index_of(run: MonitoredRun, query: Query) -> EpisodeIndex:
    """Return the index of the requested episodes, caught up with the file for a moment."""
    index = run.episodes[query.source]
    index.catch_up()
    return index


def path_of(text: str) -> list[int]:
    """Parse a path through a tree, such as `1.0.2`."""
    return [count_of(part) for part in text.split(".")[:100]] if text else []


def count_of(text: str) -> int:
    """Parse a whole number of at most nine digits; anything else is 0."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0
