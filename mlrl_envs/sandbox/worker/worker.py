"""One worker: a process that confines itself, starts two zygotes and serves its owner."""

import json
import os
import signal
import socket

from mlrl_envs.sandbox.jail import jail
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.worker.allowance import Allowance
from mlrl_envs.sandbox.worker.roles import Settings, virtual_bytes
from mlrl_envs.sandbox.worker.supervisor import JOB_CAP, CannotConfineError, Supervisor

__all__ = ["main"]

# Generous: starting on a busy machine is no test of speed.
SELF_TEST_ALLOWANCE = Allowance(20.0, 10.0, 10.0, 10.0, 256, 64)
SELF_TEST = json.dumps(
    {
        "source": "def answer():\n    return 42\n",
        "tests": "def check(candidate):\n    assert candidate() == 42\n",
        "helpers": "",
        "style": "check",
        "entry_points": ["answer"],
        "assurance": "split",
        "dunders": [],
    }
).encode()


def main(descriptor: int) -> None:
    """Serve jobs from the owner's socket, a descriptor, until it hangs up."""
    # A terminal and a launcher stop whole groups of processes: the owner may finish what is in
    # hand, and ends its workers by hanging up. All that is forked from here ignores them, too.
    for asked_to_stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked_to_stop, signal.SIG_IGN)
    os.environ.clear()
    owner = socket.socket(fileno=os.dup(descriptor))  # the owner's number may be a high one
    os.close(descriptor)
    settings = json.loads(frames.receive(owner.fileno(), JOB_CAP) or b"{}")
    try:
        supervisor = _set_up(owner, settings)
    except Exception as error:  # noqa: BLE001  whatever it is, the owner must hear of it
        said = {"error": f"{type(error).__name__}: {error}"}
        frames.send(owner.fileno(), json.dumps(said).encode())
        os._exit(1)
    supervisor.serve()


def _set_up(owner: socket.socket, settings: Settings) -> Supervisor:
    """Confine this worker as far as it goes, prove that it works, and greet the owner.

    Raises:
        CannotConfineError: If the tier is too weak, or the worker fails its own test.
    """
    tier, layers = settings.get("tier"), settings.get("layers")
    if tier is None:
        tier, layers = jail.inspect(settings["maximum_tier"])
    if tier == "D" and not settings["allow_insecure"]:
        raise CannotConfineError("this host can confine nothing (tier D); allow_insecure=True")
    if tier > settings["minimum_tier"] and tier != "D":
        raise CannotConfineError(f"this host reaches tier {tier}, not {settings['minimum_tier']}")
    settings["base_bytes"] = virtual_bytes()
    visible = jail.visible(tier)
    jail.enter_world(tier, owner.close)
    if settings.get("sessions"):
        from mlrl_envs.sandbox.sessions.session_worker import SessionSupervisor as Chosen
    else:
        Chosen = Supervisor  # type: ignore[assignment,misc]  # noqa: N806  a class
    supervisor: Supervisor = Chosen(owner, settings, tier, visible)
    if tier == "A":
        jail.hide_package()
    for plain in (False, True):
        outcome = supervisor.run(SELF_TEST_ALLOWANCE.pack() + SELF_TEST, plain=plain)
        if outcome.get("status") != "passed":
            raise CannotConfineError(f"the worker fails its own test: {outcome}")
    greeting = {"ready": True, "tier": tier, "layers": layers}
    frames.send(owner.fileno(), json.dumps(greeting).encode())
    return supervisor
