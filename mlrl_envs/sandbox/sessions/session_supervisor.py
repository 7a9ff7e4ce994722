"""Supervisor of a worker for sessions: one workspace at a time, with directory and interpreters.

The supervisor has one zygote, which forks an interpreter for each interpreter name of the session,
and a new process for each file call. An answer of either is one byte (success or failure) and a
text. It comes from an untrusted process, so it is read with a deadline and a size limit.
"""

import json
import os
import re
import select
import signal
import socket
import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from mlrl_envs.sandbox.jail import confine
from mlrl_envs.sandbox.sessions import cells, folders
from mlrl_envs.sandbox.sessions.session_children import prepare_session
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.wire.printable import clean_output
from mlrl_envs.sandbox.worker import zygote
from mlrl_envs.sandbox.worker.children import Settings
from mlrl_envs.sandbox.worker.deadlines import OverloadError, RequestDeadline
from mlrl_envs.sandbox.worker.process_times import ProcessTimes
from mlrl_envs.sandbox.worker.supervisor import JOB_CAP, Supervisor, preload_for_candidates

__all__ = ["SessionSupervisor"]

LOST = ("timeout", "cpu_limit", "died", "hostile", "protocol_violation")
TEXTS = {
    "timeout": "stopped: no end within {seconds:g} s",
    "cpu_limit": "stopped: out of processor time",
    "died": "the interpreter died",
    "full": "stopped: too many or too large files",
    "hostile": "stopped: a forbidden system call",
    "protocol_violation": "stopped: the protocol was broken",
}
NO_FILES = (
    "session files need tier A, or tier B with Linux 6.2 or later: "
    "this host cannot restrict writing to one directory"
)
HEADER = struct.Struct("!I")
FILE_SLOT = b"f"
REPLAY_FACTOR = 2.0  # extends time limits in a replay: a call that ended in time must do so again
MAX_INTERPRETERS = 16
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
SHOWN_PATH = "/box/tmp"  # path of the directory in tier A, shown in every tier
Answer: TypeAlias = tuple[str, str]  # status and text of a `Reply`


class BrokenError(Exception):
    """A process broke the protocol, or the directory is full; the message is a key of `TEXTS`."""


class NoFilesError(Exception):
    """This host's tier gives sessions no directory."""


class SessionSupervisor(Supervisor):
    """Plays calls in a workspace, which is either reset first or continued.

    Args:
        owner: Socket to the owner.
        settings: The owner's settings.
        tier: How far this host can confine processes.
        visible: Paths that cells may read.
        times: Times of the worker's processes.

    Raises:
        RuntimeError: If the zygote cannot confine itself.
    """

    def __init__(
        self,
        owner: socket.socket,
        settings: Settings,
        tier: confine.Tier,
        visible: list[str],
        times: ProcessTimes,
    ) -> None:
        self._owner = owner
        self._times = times
        self._settings = settings
        self._cap = int(settings["output_kib"] * 1024)
        self._folder = folders.open_folder(tier, visible)
        self._links: dict[str, tuple[bytes, socket.socket]] = {}
        preload_for_candidates()

        def set_up_sessions() -> Callable[[bytes], Any]:
            confine.isolate_processes(tier)
            confine.confine_zygote(tier, visible, self._folder.writable)
            return prepare_session(settings, confine.candidate_seal(tier), self._folder.path)

        self._zygote = self._fork_zygote(set_up_sessions, [owner])
        answer = frames.receive(self._zygote.fileno(), JOB_CAP)
        if answer != b"ready":
            self._folder.remove()
            raise RuntimeError(f"a zygote failed: {(answer or b'died').decode()}")

    def serve(self) -> None:
        """Play scripts until the owner closes its socket."""
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

    def run(self, job: bytes, *, stateless: bool) -> dict[str, Any]:  # noqa: ARG002  as in the base class
        """Play the self-test; return a dict with status `passed` if sessions work."""
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
        """Play a script and return the answers of its calls.

        The history is played first, without answers. Playing stops after the first call that
        loses its interpreter.

        Returns:
            `replies`, a list of status and text; or only `infra` if files are not available, or
            only `overloaded` if the machine is too busy.
        """
        if script["fresh"]:
            self._reset()
        seconds: float = script["seconds"]
        replies: list[Answer] = []
        try:
            for kind, name, text in script["history"]:
                self._perform(kind, name, text, seconds * REPLAY_FACTOR)
            for kind, name, text in script["calls"]:
                replies.append(self._perform(kind, name, text, seconds))
                if replies[-1][0] in LOST:
                    break
        except NoFilesError:
            return {"infra": NO_FILES}
        except OverloadError as error:
            return {"overloaded": str(error)}
        return {"replies": replies}

    def _perform(self, kind: str, name: str, text: str, seconds: float) -> Answer:
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
            return self._request(ours, FILE_SLOT, seconds)
        finally:
            ours.close()
            zygote.end_child(self._zygote, FILE_SLOT)

    def _run_cell(self, name: str, source: str, seconds: float) -> Answer:
        if name not in self._links:
            if len(self._links) >= MAX_INTERPRETERS:
                return "error", f"there are {MAX_INTERPRETERS} interpreters already"
            taken = {slot for slot, _link in self._links.values()}
            slot = next(bytes([n]) for n in range(MAX_INTERPRETERS) if bytes([n]) not in taken)
            self._links[name] = slot, self._start(slot, b"")
        slot, link = self._links[name]
        payload = source.encode("utf-8", "surrogatepass")
        reply = self._request(link, slot, seconds, HEADER.pack(len(payload)) + payload)
        if reply[0] in LOST:
            self._end(name)
        return reply

    def _start(self, slot: bytes, payload: bytes) -> socket.socket:
        """Make the zygote fork a process, and return the supervisor's end of the socket to it."""
        ours, theirs = socket.socketpair()
        sink = os.open("/dev/null", os.O_RDWR)
        try:
            zygote.start_child(self._zygote, slot, payload, [theirs.fileno(), sink])
        finally:
            os.close(sink)
            theirs.close()
        return ours

    def _request(
        self, link: socket.socket, slot: bytes, seconds: float, request: bytes = b""
    ) -> Answer:
        """Send a request to a process, and return its answer or how it ended."""
        deadline = RequestDeadline(self._times.read, seconds, self._settings["max_stretch"])
        try:
            rest = memoryview(request)
            while rest:
                self._wait_for(link, deadline, writing=True)
                rest = rest[link.send(rest, socket.MSG_DONTWAIT) :]
            answer = self._receive(link, deadline)
        except TimeoutError:
            return "timeout", TEXTS["timeout"].format(seconds=seconds)
        except BrokenError as broken:
            status = str(broken)
            return "died" if status == "full" else status, TEXTS[status]
        except OSError:
            status = self._cause_of_death(slot)
            return status, TEXTS[status]
        status = {cells.SUCCEEDED: "ok", cells.FAILED: "error"}.get(
            answer[:1], "protocol_violation"
        )
        return status, TEXTS.get(status) or self._clean(answer[1:])

    def _receive(self, link: socket.socket, deadline: RequestDeadline) -> bytes:
        """Return one frame.

        Raises:
            TimeoutError: If the frame is not complete before the deadline.
            BrokenError: If the frame is too long, more bytes follow, or the directory is full.
            OSError: If the process closed the connection.
        """
        buffer = bytearray()
        size = HEADER.size
        while len(buffer) < size:
            self._wait_for(link, deadline)
            chunk = link.recv(1 << 16)
            if not chunk:
                raise OSError("the process closed the connection")
            buffer += chunk
            if len(buffer) >= HEADER.size:
                size = HEADER.size + HEADER.unpack_from(buffer)[0]
            if size > HEADER.size + 1 + self._cap or len(buffer) > size:
                raise BrokenError("protocol_violation")
        if self._folder.is_full():
            raise BrokenError("full")
        return bytes(buffer[HEADER.size :])

    def _wait_for(
        self, link: socket.socket, deadline: RequestDeadline, *, writing: bool = False
    ) -> None:
        """Wait until a socket can be read or written."""
        to_read, to_write = ([], [link]) if writing else ([link], [])
        while True:
            pause = deadline.check()
            readable, writable, _ = select.select([*to_read, self._owner], to_write, [], pause)
            if self._owner in readable:  # it sends nothing during a script: it closed its end
                self._leave(0)
            if link in readable or writable:
                return
            if self._folder.is_full():
                raise BrokenError("full")

    def _clean(self, raw: bytes) -> str:
        text = ADDRESS.sub("at 0x...", clean_output(raw, self._cap))
        return text.replace(self._folder.path, SHOWN_PATH) if self._folder.writable else text

    def _cause_of_death(self, slot: bytes) -> str:
        """Kill a process that closed its connection, and return the status of its call."""
        status, seconds, _resident = zygote.end_child(self._zygote, slot)
        if status == zygote.FORK_FAILED:
            raise frames.FrameError("a process could not be forked")
        killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if killed == signal.SIGSYS:
            return "hostile"
        if killed == signal.SIGXCPU or seconds >= self._settings["cpu_seconds"]:
            return "cpu_limit"
        return "died"

    def _end(self, name: str) -> None:
        """End the interpreter with this name, if there is one."""
        if name in self._links:
            slot, link = self._links.pop(name)
            link.close()
            zygote.end_child(self._zygote, slot)

    def _reset(self) -> None:
        for name in list(self._links):
            self._end(name)
        self._folder.renew()

    def _leave(self, status: int) -> None:
        """End this worker and delete its files."""
        try:
            if status == 0:
                for name in list(self._links):
                    self._end(name)
            self._folder.remove()
        finally:
            os._exit(status)
