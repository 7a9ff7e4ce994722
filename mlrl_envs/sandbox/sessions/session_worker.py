"""A worker's sessions: one workspace at a time, with its directory and its interpreters.

The supervisor of such a worker has one zygote, which forks an interpreter for each name that
cells are run under, and a fresh process for each file operation. What comes back from any of them
is one byte and a text, and is read with a deadline.
"""

import json
import os
import re
import select
import signal
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from mlrl_envs.sandbox.jail import jail
from mlrl_envs.sandbox.sessions import cells, files, folders
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.wire.text import clean_output
from mlrl_envs.sandbox.worker import zygote
from mlrl_envs.sandbox.worker.roles import LINK, Settings, limit_resources
from mlrl_envs.sandbox.worker.supervisor import (
    GLANCE_SECONDS,
    JOB_CAP,
    Supervisor,
    preload_for_candidates,
)

__all__ = ["LOST", "SessionSupervisor"]

LOST = ("timeout", "cpu_limit", "died", "hostile", "protocol_violation")
TEXTS = {
    "timeout": "stopped: no end within {seconds:g} s",
    "cpu_limit": "stopped: out of processor time",
    "died": "the interpreter died",
    "full": "stopped: too many or too large files",
    "hostile": "stopped: a forbidden system call",
    "protocol_violation": "stopped: the protocol was broken",
}
NO_FILES = "this host cannot keep programs from writing elsewhere: sessions need tier A or B"
HEADER = struct.Struct("!I")
FILE_SLOT = b"f"
PATIENCE = 2.0  # a replay gets this many times the limit: what ended well must end well again
MAX_INTERPRETERS = 16
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
SHOWN_PATH = "/box/tmp"  # what the directory is called in tier A
Reply = tuple[str, str]


class BrokenError(Exception):
    """An interpreter ended a cell in another way than by answering."""


class NoFilesError(Exception):
    """This host's tier gives sessions no directory."""


class SessionSupervisor(Supervisor):
    """Plays calls in a workspace, from its beginning or from where the last ones left it."""

    def __init__(
        self, owner: socket.socket, settings: Settings, tier: jail.Tier, visible: list[str]
    ) -> None:
        self._owner = owner
        self._settings = settings
        self._cap = int(settings["output_kib"] * 1024)
        self._folder = folders.open_folder(tier, visible)
        self._links: dict[str, tuple[bytes, socket.socket]] = {}
        preload_for_candidates()

        def be_sessions() -> Callable[[bytes], Any]:
            jail.isolate_processes(tier)
            jail.confine_zygote(tier, visible, self._folder.writable)
            return prepare_session(settings, jail.seal_candidate(tier), self._folder.path)

        self._zygote = self._spawn(be_sessions, [owner])
        said = frames.receive(self._zygote.fileno(), JOB_CAP)
        if said != b"ready":
            self._folder.remove()
            raise RuntimeError(f"a zygote failed: {(said or b'died').decode()}")

    def serve(self) -> None:
        """Play scripts until the owner hangs up."""
        while True:
            script = frames.receive(self._owner.fileno(), JOB_CAP)
            if script is None:
                self._leave(0)
                return
            try:
                answer = self.play(json.loads(script))
            except (frames.FrameError, OSError):
                self._leave(3)  # the zygote was killed from outside: the owner replaces us
                return
            frames.send(self._owner.fileno(), json.dumps(answer).encode())

    def run(self, job: bytes, *, plain: bool) -> dict[str, Any]:  # noqa: ARG002  as the base class
        """Stand in for the run of a program: return an outcome that says whether sessions work."""
        calls = [["python", "", "x = 41"], ["python", "", "x + 1"]]
        if self._folder.usable:
            calls[1:] = [["write", "one", "1"], ["python", "", "x + int(open('one').read())"]]
        answer = self.play({"fresh": True, "history": [], "calls": calls, "seconds": 10.0})
        self._reset()
        if answer["replies"][-1] == ("ok", "42\n"):
            return {"status": "passed"}
        self._folder.remove()
        return answer

    def play(self, script: dict[str, Any]) -> dict[str, Any]:
        """Play a script: what came before without a word, then calls up to the first lost one."""
        if script["fresh"]:
            self._reset()
        seconds: float = script["seconds"]
        replies: list[Reply] = []
        try:
            for kind, name, text in script["history"]:
                self._perform(kind, name, text, seconds * PATIENCE)
            for kind, name, text in script["calls"]:
                replies.append(self._perform(kind, name, text, seconds))
                if replies[-1][0] in LOST:
                    break
        except NoFilesError:
            return {"infra": NO_FILES}
        return {"replies": replies}

    def _perform(self, kind: str, name: str, text: str, seconds: float) -> Reply:
        if kind == "restart":
            self._end(name)
            return "ok", ""
        if kind == "python":
            return self._run_cell(name, text, seconds)
        if not self._folder.usable:
            raise NoFilesError
        operation = json.dumps([kind, name, text]).encode()
        ours = self._start(FILE_SLOT, operation)
        try:
            return self._hear(ours, FILE_SLOT, seconds)
        finally:
            ours.close()
            zygote.end(self._zygote, FILE_SLOT)

    def _run_cell(self, name: str, source: str, seconds: float) -> Reply:
        if name not in self._links:
            if len(self._links) >= MAX_INTERPRETERS:
                return "error", f"there are {MAX_INTERPRETERS} interpreters already"
            taken = {slot for slot, _link in self._links.values()}
            slot = next(bytes([n]) for n in range(MAX_INTERPRETERS) if bytes([n]) not in taken)
            self._links[name] = slot, self._start(slot, b"")
        slot, link = self._links[name]
        payload = source.encode("utf-8", "surrogatepass")
        reply = self._hear(link, slot, seconds, HEADER.pack(len(payload)) + payload)
        if reply[0] in LOST:
            self._end(name)
        return reply

    def _start(self, slot: bytes, payload: bytes) -> socket.socket:
        """Have the zygote fork a process and return our end of its link."""
        ours, theirs = socket.socketpair()
        sink = os.open("/dev/null", os.O_WRONLY)
        try:
            zygote.start(self._zygote, slot, payload, [theirs.fileno(), sink])
        finally:
            os.close(sink)
            theirs.close()
        return ours

    def _hear(
        self, link: socket.socket, slot: bytes, seconds: float, question: bytes = b""
    ) -> Reply:
        """Ask a process, and return its answer or how it ended."""
        due = time.monotonic() + seconds
        try:
            if question:  # sending nothing fails where the other side has answered and left
                link.settimeout(seconds)
                link.sendall(question)
            answer = self._receive(link, due)
        except TimeoutError:
            return "timeout", TEXTS["timeout"].format(seconds=seconds)
        except BrokenError as broken:
            status = str(broken)
            return "died" if status == "full" else status, TEXTS[status]
        except OSError:
            status = self._cause_of_death(slot)
            return status, TEXTS[status]
        status = {cells.FINE: "ok", cells.FAILED: "error"}.get(answer[:1], "protocol_violation")
        return status, TEXTS.get(status) or self._clean(answer[1:])

    def _receive(self, link: socket.socket, due: float) -> bytes:
        """Return one frame.

        Raises:
            TimeoutError: If it is not complete in time.
            BrokenError: If it is too long, or more than one, or the directory is full.
            OSError: If the process is gone.
        """
        buffer = bytearray()
        size = HEADER.size
        while len(buffer) < size:
            self._wait_for(link, due)
            chunk = link.recv(1 << 16)
            if not chunk:
                raise OSError("it is gone")
            buffer += chunk
            if len(buffer) >= HEADER.size:
                size = HEADER.size + HEADER.unpack_from(buffer)[0]
            if size > HEADER.size + 1 + self._cap or len(buffer) > size:
                raise BrokenError("protocol_violation")
        if self._folder.is_full():
            raise BrokenError("full")
        return bytes(buffer[HEADER.size :])

    def _wait_for(self, link: socket.socket, due: float) -> None:
        while True:
            left = due - time.monotonic()
            if left <= 0:
                raise TimeoutError
            ready, _, _ = select.select([link, self._owner], [], [], min(left, GLANCE_SECONDS))
            if self._owner in ready:  # it never speaks during a script: it is gone
                self._leave(0)
            if link in ready:
                return
            if self._folder.is_full():
                raise BrokenError("full")

    def _clean(self, said: bytes) -> str:
        text = ADDRESS.sub("at 0x...", clean_output(said, self._cap))
        return text.replace(self._folder.path, SHOWN_PATH) if self._folder.writable else text

    def _cause_of_death(self, slot: bytes) -> str:
        """Return why a process that hung up is gone."""
        status, seconds, _resident = zygote.end(self._zygote, slot)
        if status == zygote.FORK_FAILED:
            raise frames.FrameError("a process could not be forked")
        killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if killed == signal.SIGSYS:
            return "hostile"
        if killed == signal.SIGXCPU or seconds >= self._settings["cpu_seconds"]:
            return "cpu_limit"
        return "died"

    def _end(self, name: str) -> None:
        """End an interpreter, if there is one of that name."""
        if name in self._links:
            slot, link = self._links.pop(name)
            link.close()
            zygote.end(self._zygote, slot)

    def _reset(self) -> None:
        for name in list(self._links):
            self._end(name)
        self._folder.renew()

    def _leave(self, status: int) -> None:
        """End this worker and leave no file behind."""
        try:
            if status == 0:
                for name in list(self._links):
                    self._end(name)
            self._folder.remove()
        finally:
            os._exit(status)


def prepare_session(
    settings: Settings, seal: Callable[[], None], place: str
) -> Callable[[bytes], Callable[[list[int]], None]]:
    """Return what a sessions' zygote does before each fork.

    The payload is a file operation, or empty: then the child becomes an interpreter.

    Args:
        settings: The worker's limits.
        seal: Puts the last layer on, after which the process cannot fork.
        place: Working directory.
    """
    cpu = -int(-settings["cpu_seconds"] // 1)
    memory = settings["base_bytes"] + int(settings["memory_mib"] * (1 << 20))
    cap = int(settings["output_kib"] * 1024)

    def enter(descriptors: list[int]) -> None:
        link, sink = descriptors
        os.dup2(sink, 1)
        os.dup2(link, LINK)
        os.closerange(4, max(link, sink, 16) + 1)
        os.chdir(place)
        limit_resources(memory, cpu)
        seal()

    def prepare(payload: bytes) -> Callable[[list[int]], None]:
        def run(descriptors: list[int]) -> None:
            enter(descriptors)
            if not payload:
                cells.serve_cells(LINK, cap)
                return
            kind, path, content = json.loads(payload)
            fine, text = files.operate(kind, path, content, cap)
            said = text.encode("utf-8", "backslashreplace")[:cap]
            frames.send(LINK, (cells.FINE if fine else cells.FAILED) + said)

        return run

    return prepare
