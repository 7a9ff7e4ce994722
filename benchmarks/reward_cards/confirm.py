"""Confirmation of stored audits after a change that should not change their rewards.

    python -m benchmarks.reward_cards mlrl/tldr-v1 mlrl/arxiv-v1 --confirm [--before ../old]

A judged audit takes up to an hour. If the honest answers and people's texts still earn what they
earned, and the audit of the same environment in `grounded`, whose rules are the same without the
scorer, has been measured again, then the attacks are not played again. The card says so.

On another processor a scorer in bfloat16 rounds differently, and a reward near a threshold differs.
With `--before`, the code in a checkout of before the change and the code of now score the answers
with a hash of all that a text scorer reads in place of the scorer, whose fingerprint must be the
same: a reward that agrees for arbitrary scores of the same texts agrees for those of the scorer.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
from benchmarks.reward_cards import corpora
from benchmarks.reward_cards.measure import SEED, audit_path, rounded, stale_line, write_audit

__all__ = ["confirm", "differences"]

TOLERANCE = 2e-3
_EARNED = """
import json, sys, zlib
from pathlib import Path
import mlrl_envs
from benchmarks.reward_cards import corpora
if any(not Path(each.__file__).is_relative_to(Path.cwd()) for each in (mlrl_envs, corpora)):
    sys.exit(f"{Path.cwd()} is no checkout: it lacks mlrl_envs or benchmarks")
class Hash:
    fingerprint = "hash"
    def score_many(self, batch):
        read = [repr((each.text, each.source, each.instruction, each.others)) for each in batch]
        return [zlib.crc32(each.encode("utf-8", "surrogatepass")) % 101 / 100 for each in read]
env_id, options, seed = json.loads(sys.argv[1])
scorer = mlrl_envs.make(env_id, **options).family.scorer.fingerprint
options["scorer"] = Hash()
honest = corpora.earned(env_id, options, corpora.honest_lines(env_id), seed)
print(json.dumps([honest, corpora.people_shares(env_id, options, seed), scorer]))
"""
_HERE = Path(__file__).parents[2]


def confirm(env_id: str, before: Path | None = None) -> str | None:
    """Renew the fingerprint of a judged audit; return the reason if it must be measured again.

    Args:
        env_id: An id in `PLANS` with an audit of `judged`.
        before: A checkout of the code before the change, whose rewards are compared; None for
            those of the audit.

    Raises:
        InfraError: If the scorer cannot be loaded.
        RuntimeError: If the other checkout cannot score the answers.
    """
    if line := stale_line(audit_path(env_id, "grounded")):
        return f"its rules without the scorer are not audited: {line}"
    path = audit_path(env_id, "judged")
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    env: Any = mlrl_envs.make(env_id, **found["options"])
    rules = mlrl_envs.fingerprint(env)
    env.close()
    if reason := _change(env_id, found, before):
        return reason
    found["measured_with"] = found.get("measured_with", found["fingerprint"]["scorer"])
    found["fingerprint"] = rules
    write_audit(path, found)
    return None


def _change(env_id: str, found: Mapping[str, Any], before: Path | None) -> str | None:
    """Return how rewards differ from those of an audit, or of a checkout; None if they agree."""
    options, stored = found["options"], (found["audit"]["honest"], found["groups"]["people"])
    earlier: Sequence[Sequence[float]]
    now: Sequence[Sequence[float]]
    if before is None:
        lines = corpora.honest_lines(env_id)
        earlier = stored
        now = (
            rounded(corpora.earned(env_id, options, lines, SEED)),
            rounded(corpora.people_shares(env_id, options, SEED)),
        )
    else:
        (*earlier, scorer), (*now, ours) = (
            _earned_by(each, env_id, options) for each in (before, _HERE)
        )
        if scorer != ours:
            return "the text scorer is another one"
        if len(now[1]) != len(stored[1]):  # without the data there are none, which would agree
            return f"there were {len(stored[1])} people's texts, now {len(now[1])}"
    for name, one, other in zip(("honest answers", "people's texts"), earlier, now, strict=True):
        if reason := differences(name, one, other):
            return reason
    return None


def _earned_by(
    checkout: Path, env_id: str, options: Mapping[str, Any]
) -> tuple[Sequence[float], Sequence[float], str]:
    """Return what honest answers and people's texts earn in a checkout with scores by a hash.

    The third value is the fingerprint of the text scorer that the hash stands for.
    """
    command = [sys.executable, "-c", _EARNED, json.dumps([env_id, options, SEED])]
    variables = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
    done = subprocess.run(
        command, cwd=checkout, env=variables, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the code in {str(checkout)!r} cannot score the answers, see above")
    honest, people, scorer = json.loads(done.stdout.splitlines()[-1])
    return rounded(honest), rounded(people), scorer


def differences(name: str, before: Sequence[float], now: Sequence[float]) -> str | None:
    """Return how rewards differ from the stored ones; None if they are the same."""
    if len(before) != len(now):
        return f"there were {len(before)} {name}, now {len(now)}"
    far = [(a, b) for a, b in zip(before, now, strict=True) if abs(a - b) > TOLERANCE]
    if not far:
        return None
    earned, stored = far[0][1], far[0][0]
    return f"{len(far)} of {len(now)} {name} earn something else, the first {earned}, not {stored}"
