"""Confirmation of stored audits after a change that should not change their rewards.

    python -m benchmarks.reward_cards mlrl/tldr-v1 mlrl/arxiv-v1 --confirm

A judged audit takes up to an hour. If the honest answers and people's texts still earn what they
earned, and the audit of the same environment in `grounded`, whose rules are the same without the
scorer, has been measured again, then the attacks are not played again. The card says so.
"""

import json
from collections.abc import Sequence
from typing import Any

import mlrl_envs
from benchmarks.reward_cards import corpora
from benchmarks.reward_cards.measure import SEED, audit_path, rounded, stale_line, write_audit

__all__ = ["confirm", "differences"]

TOLERANCE = 2e-3  # a scorer in bfloat16 rounds differently on another processor


def confirm(env_id: str) -> str | None:
    """Renew the fingerprint of a judged audit; return the reason if it must be measured again.

    Args:
        env_id: An id in `PLANS` with an audit of `judged`.

    Raises:
        InfraError: If the scorer cannot be loaded.
    """
    if line := stale_line(audit_path(env_id, "grounded")):
        return f"its rules without the scorer are not audited: {line}"
    path = audit_path(env_id, "judged")
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    env: Any = mlrl_envs.make(env_id, **found["options"])
    rules = mlrl_envs.fingerprint(env)
    env.close()
    options, lines = found["options"], corpora.honest_lines(env_id)
    pairs = (
        ("honest answers", found["audit"]["honest"], corpora.earned(env_id, options, lines, SEED)),
        (
            "people's texts",
            found["groups"]["people"],
            corpora.people_shares(env_id, options, SEED),
        ),
    )
    for name, before, now in pairs:
        if reason := differences(name, before, rounded(now)):
            return reason
    found["measured_with"] = found.get("measured_with", found["fingerprint"]["scorer"])
    found["fingerprint"] = rules
    write_audit(path, found)
    return None


def differences(name: str, before: Sequence[float], now: Sequence[float]) -> str | None:
    """Return how rewards differ from the stored ones; None if they are the same."""
    if len(before) != len(now):
        return f"there were {len(before)} {name}, now {len(now)}"
    far = [(a, b) for a, b in zip(before, now, strict=True) if abs(a - b) > TOLERANCE]
    if not far:
        return None
    earned, stored = far[0][1], far[0][0]
    return f"{len(far)} of {len(now)} {name} earn something else, the first {earned}, not {stored}"
