"""Entry point of a worker process: confinement, self-test, and the loop over jobs.

A worker is started by `exec` of a clean interpreter (see `worker/handle.py`). It confines itself
as far as the host allows, starts its zygotes, proves with a small program that they work, and
then runs jobs until the owner closes the connection.
"""

import json
import os
import signal
import socket

from mlrl_envs.sandbox.jail import confine
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.worker.children import Settings, address_space_bytes
from mlrl_envs.sandbox.worker.job_header import JobLimits
from mlrl_envs.sandbox.worker.process_times import ProcessTimes
from mlrl_envs.sandbox.worker.supervisor import JOB_CAP, CannotConfineError, Supervisor

__all__ = ["main"]

SELF_TEST_LIMITS = JobLimits(20.0, 10.0, 10.0, 10.0, 256, 64, 10.0)
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
    """Run jobs until the owner closes its socket.

    Args:
        descriptor: File descriptor of the socket to the owner.
    """
    # Terminals and launchers send these signals to whole process groups. The owner may still
    # finish the current program; it ends its workers by closing the socket. Every process forked
    # from here inherits the setting.
    for stop_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop_signal, signal.SIG_IGN)
    os.environ.clear()
    owner = socket.socket(fileno=os.dup(descriptor))  # a low number, as `select` requires
    os.close(descriptor)
    settings = json.loads(frames.receive(owner.fileno(), JOB_CAP) or b"{}")
    try:
        supervisor = _set_up(owner, settings)
    except Exception as error:  # noqa: BLE001  the owner reports every error
        said = {"error": f"{type(error).__name__}: {error}"}
        frames.send(owner.fileno(), json.dumps(said).encode())
        os._exit(1)
    supervisor.serve()


def _set_up(owner: socket.socket, settings: Settings) -> Supervisor:
    """Confine this worker as far as the host allows, test it, and send the owner its greeting.

    Raises:
        CannotConfineError: If the host's tier is weaker than required, or the self-test fails.
    """
    tier, layers = settings.get("tier"), settings.get("layers")
    if tier is None:
        tier, layers = confine.detect_tier(settings["maximum_tier"])
    if tier == "D" and not settings["allow_insecure"]:
        raise CannotConfineError(
            "this host cannot confine programs (tier D); allow_insecure=True runs them unconfined"
        )
    if tier > settings["minimum_tier"] and tier != "D":
        minimum = settings["minimum_tier"]
        raise CannotConfineError(f"this host reaches tier {tier}, but minimum_tier is {minimum}")
    settings["base_bytes"] = address_space_bytes()
    visible = confine.visible_paths(tier)
    times = ProcessTimes()  # opens /proc, which is not visible in the namespaces
    confine.enter_namespaces(tier, owner.close)
    if settings.get("sessions"):
        from mlrl_envs.sandbox.sessions.session_supervisor import SessionSupervisor as Chosen
    else:
        Chosen = Supervisor  # type: ignore[assignment,misc]  # noqa: N806  a class
    supervisor: Supervisor = Chosen(owner, settings, tier, visible, times)
    if tier == "A":
        confine.unmount_package()
    for stateless in (False, True):
        outcome = supervisor.run(SELF_TEST_LIMITS.pack() + SELF_TEST, stateless=stateless)
        if outcome.get("status") != "passed":
            raise CannotConfineError(f"the self-test of the worker failed: {outcome}")
    greeting = {"ready": True, "tier": tier, "layers": layers}
    frames.send(owner.fileno(), json.dumps(greeting).encode())
    return supervisor
