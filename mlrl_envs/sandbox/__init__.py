"""Sandbox that runs untrusted programs against trusted tests.

The tests run in a judge process. The untrusted program runs in a separate, confined process, which
holds only its own source and the arguments of each call, so it cannot forge its verdict. See
`docs/sandbox.md` for the threat model, the processes and what is not covered.
"""

import threading

from mlrl_envs.sandbox.infer import infer_dunders, infer_entry_points, infer_style
from mlrl_envs.sandbox.pool import Sandbox
from mlrl_envs.sandbox.probing import Probe, probe
from mlrl_envs.sandbox.program import (
    Assurance,
    Limits,
    Outcome,
    Program,
    Status,
    Style,
    TestRecord,
    Tier,
)
from mlrl_envs.sandbox.session import Call, Reply, Script, Session, remembered

__all__ = [
    "Assurance",
    "Call",
    "Limits",
    "Outcome",
    "Probe",
    "Program",
    "Reply",
    "Sandbox",
    "Script",
    "Session",
    "Status",
    "Style",
    "TestRecord",
    "Tier",
    "infer_dunders",
    "infer_entry_points",
    "infer_style",
    "probe",
    "remembered",
    "run",
    "shared_sandbox",
]

_shared: dict[Limits, Sandbox] = {}
_shared_lock = threading.Lock()


def shared_sandbox(limits: Limits | None = None) -> Sandbox:
    """Return the sandbox that all callers in this process share for the given limits."""
    wanted = limits or Limits()
    with _shared_lock:
        if wanted not in _shared:
            _shared[wanted] = Sandbox(limits=wanted)
        return _shared[wanted]


def run(program: Program | str, tests: str | None = None, limits: Limits | None = None) -> Outcome:
    """Run one program in the shared sandbox and return its outcome.

    Args:
        program: A `Program`, or untrusted source.
        tests: Trusted tests, if `program` is source; style and entry points are inferred.
        limits: Limits of the program; None for the defaults.

    Raises:
        InvalidArgumentError: If the tests do not parse, or use no name that the source defines.
        InfraError: If no worker can be started.
    """
    if isinstance(program, str):
        style = infer_style(tests or "")
        entry_points = infer_entry_points(program, tests or "", style)
        program = Program(program, tests or "", style, entry_points)
    return shared_sandbox(limits).run(program)
