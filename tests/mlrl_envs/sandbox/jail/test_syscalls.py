"""Tests of the tables of call numbers, against the kernel's headers where they are installed."""

import re
from pathlib import Path

import pytest

from mlrl_envs.sandbox.jail import syscalls

DEFINE = re.compile(r"^#define\s+__NR(?:3264)?_(\w+)\s+(\d+)$", re.MULTILINE)
HEADERS = {
    "AARCH64": ("/usr/include/asm-generic/unistd.h",),
    "X86_64": (
        "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
        "/usr/include/asm/unistd_64.h",
    ),
}
# The generic header lists this call under the name of its 32-bit variant.
RENAMED = {"newfstatat": "fstatat"}


@pytest.mark.parametrize("table", HEADERS)
def test_numbers_equal_those_of_the_kernel_headers(table):
    header = next((Path(path) for path in HEADERS[table] if Path(path).exists()), None)
    if header is None:
        pytest.skip("no kernel headers here (linux-libc-dev)")
    known = {name: int(number) for name, number in DEFINE.findall(header.read_text())}
    ours = syscalls._numbers(getattr(syscalls, table))
    theirs = {name: known.get(name, known.get(RENAMED.get(name))) for name in ours}
    assert ours == theirs


@pytest.mark.parametrize("table", HEADERS)
def test_names_and_numbers_are_unique(table):
    words = getattr(syscalls, table).split()
    assert len(set(words[::2])) == len(words[::2])
    assert len(set(words[1::2])) == len(words[1::2])


def test_an_unknown_call_is_an_operating_system_error():
    with pytest.raises(OSError, match="not known"):
        syscalls.call("make_coffee")
