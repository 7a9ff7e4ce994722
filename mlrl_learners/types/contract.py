"""Rules for what learners return, each with an error that names it."""

from collections.abc import Mapping

from mlrl_envs.errors import ContractError

__all__ = ["check_metrics"]

RESERVED_NAMES = frozenset(
    (
        *("iteration", "step", "seconds", "sampler/policy_age", "sampler/replaced"),
        *("sampler/rollouts_wait_seconds", "sampler/weights_wait_seconds"),
    )
)
RESERVED_PREFIXES = ("train/", "time/", "eval/")
RESERVED_SUFFIX = "/tokens_per_second"  # of an agent


def check_metrics(metrics: object, where: str) -> dict[str, float]:
    """Return the metrics of an update, none of which has a name that the run itself writes.

    Args:
        metrics: What `update` returned.
        where: Name of the call, for the message.

    Raises:
        ContractError: If it is no mapping of names, or has a name that the run writes.
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
    return dict(metrics)


def _is_reserved(name: str) -> bool:
    return (
        name in RESERVED_NAMES
        or name.startswith(RESERVED_PREFIXES)
        or name.endswith(RESERVED_SUFFIX)
    )
