"""Fixtures: a host with attackable resources, the corpus of hostile programs, and a sandbox."""

import contextlib
import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from mlrl_envs.sandbox import Limits, Sandbox
from mlrl_envs.sandbox.jail.syscalls import NUMBERS

TESTS = """
def check(candidate):
    assert candidate([3, 1, 2]) == [1, 4, 9]
    assert candidate([]) == []
    assert candidate([2, 2]) == [4]
    for n in range(4):
        assert candidate(list(range(n))) == [i * i for i in range(n)]
    xs = [5, -5]
    assert candidate(xs) == [25] and xs == [5, -5]
"""
RIGHT = "def transform(xs):\n    return sorted({x * x for x in xs})\n"
RAW = """
import os, struct, json, time
def raw(data):
    os.write(3, struct.pack("!I", len(data)) + data)
    time.sleep(0.02)
def reply(message):
    raw(json.dumps(message).encode())
"""
SPELLED = {
    "{RAW}": RAW,
    "{NUL}": "\0",
    "{SURROGATE}": "\ud800",
    "{BOM}": "\ufeff",
    "{CR}": "\r",
    "{FF}": "\f",
}
MANY = re.compile(r"\{MANY:(.*?):(\d+)\}", re.DOTALL)
SECRET_NAME, SECRET = "MLRL_TEST_SECRET", "swordfish-4711"


def read_hostile():
    """Yield name, source and allowed statuses of every hostile program."""
    for path in sorted(Path(__file__).with_name("hostile").glob("*.txt")):
        for entry in path.read_text().split("\n=== ")[1:]:
            header, _, source = entry.partition("\n")
            name, _, statuses = header.partition(" -> ")
            yield f"{path.stem}-{name}", source, statuses


def spell(source):
    """Expand placeholders for characters and repetitions that the text files cannot hold."""
    for name, text in SPELLED.items():
        source = source.replace(name, text)
    return MANY.sub(lambda match: match[1] * int(match[2]), source)


def pytest_generate_tests(metafunc):
    if "hostile" in metafunc.fixturenames:
        programs = list(read_hostile())
        metafunc.parametrize("hostile", programs, ids=[name for name, _, _ in programs])


@pytest.fixture(scope="session")
def corpus():
    """The tests, a right program, and the hostile programs by name."""
    return TESTS, RIGHT, {name: spell(source) for name, source, _ in read_hostile()}


@dataclass
class Host:
    """A canary file, a listening socket of each kind, a victim process and a secret."""

    directory: Path
    canary: Path
    listeners: list[socket.socket]
    victim: subprocess.Popen
    names: dict[str, str]

    def fill(self, source: str) -> str:
        """Replace the placeholders of a program by the names of this host's resources."""
        for name, value in self.names.items():
            source = source.replace("{" + name + "}", value)
        return source

    def state(self) -> tuple:
        """Return the state that a program must not change."""
        seen = self.canary.stat()
        files = sorted(path.name for path in self.directory.iterdir())
        return self.canary.read_text(), seen.st_mtime_ns, seen.st_mode, seen.st_nlink, files

    def visitors(self) -> int:
        """Return the number of listeners that received a connection or data."""
        count = 0
        for listener in self.listeners:
            with contextlib.suppress(BlockingIOError):
                if listener.type == socket.SOCK_STREAM:
                    listener.accept()
                else:
                    listener.recv(100)
                count += 1
        return count


def _listen() -> tuple[list[socket.socket], int]:
    tcp = socket.create_server(("127.0.0.1", 0))
    port = tcp.getsockname()[1]
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", port))
    return [tcp, udp], port


@pytest.fixture(scope="session")
def host(tmp_path_factory):
    directory = tmp_path_factory.mktemp("host")
    canary = directory / "canary"
    canary.write_text("alive")
    directory.chmod(0o777)
    canary.chmod(0o666)
    listeners, port = _listen()
    abstract = f"mlrl-{os.getpid()}"
    for address in (str(directory / "socket"), "\0" + abstract):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen()
        listeners.append(listener)
    for listener in listeners:
        listener.setblocking(False)
    victim = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(3600)"])
    os.environ[SECRET_NAME] = SECRET
    names = {
        "CANARY": str(canary),
        "PORT": str(port),
        "SOCKET": str(directory / "socket"),
        "ABSTRACT": abstract,
        "VICTIM": str(victim.pid),
        "OWNER": str(os.getpid()),
        "SECRET_NAME": SECRET_NAME,
        "CLONE": str(NUMBERS.get("clone", 0)),
        "BPF": str(NUMBERS.get("bpf", 0)),
        "KEYCTL": str(NUMBERS.get("keyctl", 0)),
        "PERF": str(NUMBERS.get("perf_event_open", 0)),
    }
    yield Host(directory, canary, listeners, victim, names)
    victim.kill()
    victim.wait()
    for listener in listeners:
        listener.close()
    del os.environ[SECRET_NAME]


@pytest.fixture(scope="session")
def secret():
    return SECRET


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(workers=2, limits=Limits(wall_seconds=20), cache=False) as sandbox:
        yield sandbox
