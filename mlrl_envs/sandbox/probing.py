"""What this host can enforce, found out once a process by starting a worker and asking it."""

import os
import warnings
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from mlrl_envs.sandbox.program import Limits, Tier
from mlrl_envs.sandbox.worker.handle import WorkerHandle

__all__ = ["Layer", "Probe", "host_tier", "probe", "remember_tier"]

TIER_VARIABLE = "MLRL_SANDBOX_TIER"  # caps the tier, for tests and for comparing costs
MEANINGS: dict[Tier, str] = {
    "A": "namespaces, Landlock and seccomp: nothing of the host can be seen or touched",
    "B": "Landlock and seccomp: no writes, no network; verdicts as strong as in A",
    "C": "seccomp: files that you may read, programs may read as well",
    "D": "nothing can be confined: refused unless allow_insecure=True",
}


@dataclass(frozen=True, slots=True)
class Layer:
    """One row of the probe's table."""

    name: str
    available: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Probe:
    """What this host can enforce.

    Attributes:
        tier: "A" (everything) to "D" (nothing).
        meaning: The tier in words.
        table: One row for each layer.
    """

    tier: Tier
    meaning: str
    table: tuple[Layer, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the probe as JSON values."""
        return {**asdict(self), "table": [asdict(row) for row in self.table]}

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.table)
        rows = [
            f"  {row.name:<{width}}  {'yes' if row.available else 'no ':<3}  {row.detail}"
            for row in self.table
        ]
        return "\n".join([f"sandbox tier {self.tier}: {self.meaning}", *rows])


_known: dict[str, tuple[Tier, list[Any]]] = {}


def host_tier() -> dict[str, Any]:
    """Return settings that spare a worker the probing that another has done."""
    maximum = os.environ.get(TIER_VARIABLE, "A")
    tier, layers = _known.get(maximum, (None, None))
    return {"maximum_tier": maximum, "tier": tier, "layers": layers}


def remember_tier(greeting: dict[str, Any]) -> None:
    """Keep what a worker found out, and warn once where confinement is weak."""
    maximum = os.environ.get(TIER_VARIABLE, "A")
    if maximum in _known:
        return
    _known[maximum] = greeting["tier"], greeting["layers"]
    if greeting["tier"] in ("C", "D"):
        message = f"sandbox tier {greeting['tier']}: {MEANINGS[greeting['tier']]}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def probe() -> Probe:
    """Return what this host can enforce; asked once a process.

    Raises:
        InfraError: If no worker can be started at all.
    """
    return _probe(os.environ.get(TIER_VARIABLE, "A"))


@lru_cache(maxsize=4)
def _probe(_maximum: str) -> Probe:
    limits = Limits()
    settings = {**asdict(limits), "minimum_tier": "D", "allow_insecure": True, **host_tier()}
    worker = WorkerHandle(limits, settings)
    worker.close()
    tier: Tier = worker.greeting["tier"]
    return Probe(tier, MEANINGS[tier], tuple(Layer(*row) for row in worker.greeting["layers"]))
