"""Tests of the seccomp filters, executed by a small BPF interpreter for both architectures."""

import struct

import pytest

from mlrl_envs.sandbox.jail import seccomp, syscalls

X86_64, AARCH64 = 0xC000003E, 0xC00000B7
ARCHITECTURES = {"X86_64": X86_64, "AARCH64": AARCH64}
KILL, ALLOW, REFUSE, MISSING = 0x80000000, 0x7FFF0000, 0x00050001, 0x00050026
THREAD = 0x3D0F00


@pytest.fixture(params=ARCHITECTURES)
def numbers(request, monkeypatch):
    table = syscalls._numbers(getattr(syscalls, request.param))
    monkeypatch.setattr(seccomp, "NUMBERS", table)
    monkeypatch.setattr(seccomp, "AUDIT_ARCH", ARCHITECTURES[request.param])
    monkeypatch.setattr(seccomp, "prepared", lambda *_arguments: None)
    return table


def answer(program, number, arguments=(), architecture=None):
    """Run a filter as the kernel does, and return its answer."""
    arch = seccomp.AUDIT_ARCH if architecture is None else architecture
    padded = (*arguments, *[0] * 6)[:6]
    data = struct.pack("=IIQ6Q", number, arch, 0, *padded)
    code = [struct.unpack_from("=HBBI", program._code.raw, 8 * i) for i in range(program.length)]
    loaded = place = 0
    while True:
        operation, yes, no, value = code[place]
        place += 1
        if operation == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            return value
        elif operation == 0x05:
            place += value
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: loaded & value != 0}
            place += yes if holds[operation] else no


def names(listing, numbers):
    return [name for name in listing.split() if name in numbers]


def test_forbidden_calls_kill(numbers):
    program = seccomp.zygote_filter()
    for name in names(seccomp.KILLED, numbers):
        assert answer(program, numbers[name]) == KILL, name


def test_listed_calls_are_allowed_and_all_others_refused(numbers):
    program = seccomp.zygote_filter()
    allowed = {numbers[name] for name in names(seccomp.ALLOWED, numbers)}
    special = {numbers[name] for name in (*seccomp.CHECKED, "fcntl", "clone3")}
    killed = {numbers[name] for name in names(seccomp.KILLED, numbers)}
    for number in range(600):
        if number in allowed:
            assert answer(program, number) == ALLOW
        elif number not in special | killed:
            assert answer(program, number) == REFUSE
    assert answer(program, numbers["clone3"]) == MISSING


@pytest.mark.parametrize("architecture", [0, 0x40000003, X86_64, AARCH64])
def test_another_architecture_kills(numbers, architecture):
    program = seccomp.zygote_filter()
    same = architecture == seccomp.AUDIT_ARCH
    assert (answer(program, numbers["read"], (), architecture) == KILL) != same


def test_x32_calls_kill(numbers):
    program = seccomp.zygote_filter()
    assert answer(program, 0x40000000 | numbers["read"]) == KILL


def test_checked_arguments_are_compared_with_all_64_bits(numbers):
    program = seccomp.zygote_filter()
    unix, inet = (1, 1, 0), (2, 1, 0)
    assert answer(program, numbers["socketpair"], unix) == ALLOW
    assert answer(program, numbers["socketpair"], inet) == REFUSE
    assert answer(program, numbers["socketpair"], (1 + (1 << 32), 1, 0)) == REFUSE
    assert answer(program, numbers["prlimit64"], (7,)) == REFUSE
    assert answer(program, numbers["fcntl"], (3, 8)) == REFUSE
    assert answer(program, numbers["fcntl"], (3, 1)) == ALLOW


def test_without_write_access_files_open_only_for_reading(numbers):
    program = seccomp.zygote_filter(writes=False)
    for flags, expected in (
        (0, ALLOW),
        (1, REFUSE),
        (2, REFUSE),
        (0o100, REFUSE),
        (0o1000, REFUSE),
    ):
        assert answer(program, numbers["openat"], (0, 0, flags)) == expected
    for name in names(seccomp.WRITING, numbers):
        assert answer(program, numbers[name]) == REFUSE, name
    assert answer(program, numbers["openat2"]) == MISSING


def test_candidates_may_create_threads_only(numbers):
    program = seccomp.candidate_filter()
    assert answer(program, numbers["clone"], (THREAD,)) == ALLOW
    for flags in (0, 17, THREAD | 0x10000000, THREAD | (1 << 40)):
        assert answer(program, numbers["clone"], (flags,)) == REFUSE
    for name in seccomp.CANDIDATE_REFUSED.split():
        assert answer(program, numbers[name]) == REFUSE, name
    assert answer(program, numbers["read"]) == ALLOW
