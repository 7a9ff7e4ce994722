"""Detection of the confinement that this host can enforce.

A worker detects the tier when it starts. The result is kept for the whole process, so that later
workers skip the detection.
"""

import os
import warnings
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from mlrl_envs.sandbox.program import Limits, Tier
from mlrl_envs.sandbox.worker.handle import WorkerHandle

__all__ = ["Layer", "Probe", "known_tier_settings", "probe", "remember_tier"]

TIER_VARIABLE = "MLRL_SANDBOX_TIER"  # upper bound of the tier, for tests and for measurements
MEANINGS: dict[Tier, str] = {
    "A": "namespaces, Landlock and seccomp: programs cannot see or change anything of the host",
    "B": "Landlock and seccomp: no writes, no network; verdicts as reliable as in tier A",
    "C": "seccomp: no writes, no network; programs can read every file that you can read",
    "D": "no confinement: refused unless allow_insecure=True",
}


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of confinement.

    Attributes:
        name: Name of the kernel feature.
        available: Whether the host supports it.
        detail: Version, or the reason why it is not available.
    """

    name: str
    available: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Confinement that this host can enforce.

    Attributes:
        tier: From "A" (all layers) to "D" (no layer).
        meaning: Description of the tier.
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


def known_tier_settings() -> dict[str, Any]:
    """Return the settings with which a worker skips a detection that was already made."""
    maximum = os.environ.get(TIER_VARIABLE, "A")
    tier, layers = _known.get(maximum, (None, None))
    return {"maximum_tier": maximum, "tier": tier, "layers": layers}


def remember_tier(greeting: dict[str, Any]) -> None:
    """Store the tier that a worker detected; warn once if it is C or D."""
    maximum = os.environ.get(TIER_VARIABLE, "A")
    if maximum in _known:
        return
    _known[maximum] = greeting["tier"], greeting["layers"]
    if greeting["tier"] in ("C", "D"):
        message = f"sandbox tier {greeting['tier']}: {MEANINGS[greeting['tier']]}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def probe() -> Probe:
    """Return the confinement that this host can enforce, detected once per process.

    Raises:
        InfraError: If no worker can be started.
    """
    return _probe(os.environ.get(TIER_VARIABLE, "A"))


@lru_cache(maxsize=4)
def _probe(_maximum: str) -> Probe:
    settings = {
        **asdict(Limits()),
        "minimum_tier": "D",
        "allow_insecure": True,
        **known_tier_settings(),
    }
    worker = WorkerHandle(settings)
    worker.close()
    tier: Tier = worker.greeting["tier"]
    return Probe(tier, MEANINGS[tier], tuple(Layer(*row) for row in worker.greeting["layers"]))
