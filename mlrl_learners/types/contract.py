"""Rules for what learners and environments return, each with an error that names it."""

from collections.abc import Mapping
from typing import SupportsFloat

from mlrl_envs.errors import ContractError

__all__ = ["check_metrics", "checked_float"]

RESERVED_NAMES = frozenset(
    (
        *("iteration", "step", "seconds", "sampler/policy_age", "sampler/replaced"),
        *("sampler/rollouts_wait_seconds", "sampler/weights_wait_seconds"),
    )
)
RESERVED_PREFIXES = ("train/", "time/", "eval/")
RESERVED_SUFFIX = "/tokens_per_second"  # of an agent


def check_metrics(metrics: object, where: str) -> dict[str, float]:
    """Return the metrics of an update as floats; none has a name that the run itself writes.

    Args:
        metrics: What `update` returned.
        where: Name of the call, for the message.

    Raises:
        ContractError: If it is no mapping of names to numbers, or has a name that the run writes.
    """
    if not isinstance(metrics, Mapping):
        raise ContractError(f"{where} returns a mapping, got {metrics!r}")
    for name in metrics:
        if not isinstance(name, str):
            raise ContractError(f"{where} returns metrics by name, got the name {name!r}")
        if _is_reserved(name):
            raise ContractError(
                f"{where} returns the metric {name!r}, which the run itself writes; rename it"
            )
    return {
        name: checked_float(value, f"the metric {name!r} of {where}")
        for name, value in metrics.items()
    }


def checked_float(value: object, what: str) -> float:
    """Return a real number as a float, such as one of NumPy, which JSON does not know.

    Args:
        value: The number.
        what: What it is, for the message.

    Raises:
        ContractError: If it is no real number.
    """
    if isinstance(value, SupportsFloat):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):  # as of arrays
            pass
    raise ContractError(f"{what} is a number, got {value!r}")


def _is_reserved(name: str) -> bool:
    return (
        name in RESERVED_NAMES
        or name.startswith(RESERVED_PREFIXES)
        or name.endswith(RESERVED_SUFFIX)
    )
