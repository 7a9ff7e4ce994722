import os
import platform
import subprocess
import sys

import pytest

from mlrl_learners.engine import malloc

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")

FAULTS = """
import resource
from mlrl_learners.engine.malloc import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

kept = keep_freed_memory()
for _ in range(3):
    block = bytearray(64 << 20)
    del block
before = faults()
for _ in range(5):
    block = bytearray(64 << 20)
    del block
print(kept, faults() - before)
"""

# Untouched, so that three gigabytes cost nothing.
END = """
import ctypes
from mlrl_learners.engine.malloc import keep_freed_memory

keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.sbrk.restype = ctypes.c_void_p
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
block = libc.malloc(3 << 30)
full = libc.sbrk(0)
libc.free(block)
print(full == libc.sbrk(0), 0)
"""

# Blocks of 1 MB, of which every second one is freed: the end of the heap stays in use.
RETURNED = """
from mlrl_learners.engine.malloc import keep_freed_memory, return_free_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

keep_freed_memory()
blocks = [bytearray(b"x") * (1 << 20) for _ in range(200)]
del blocks[::2]
assert not return_free_memory(at_least=1 << 30)
before = resident()
print(return_free_memory(at_least=1 << 20), before - resident())
"""


def kept_and_faults(program=FAULTS, **environment):
    """Return what a fresh process says: is memory kept, and how many pages had to be asked for."""
    set_up = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(set_up)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    kept, faults = done.stdout.split()
    return kept == "True", int(faults)


@glibc
def test_large_blocks_asked_for_again_cost_no_page():
    kept, faults = kept_and_faults()
    assert kept
    assert faults < 100  # of 5 x 16,384


@glibc
def test_gigabytes_are_kept_too():
    assert kept_and_faults(END)[0]


@glibc
def test_free_pages_between_used_blocks_are_returned():
    returned, size = kept_and_faults(RETURNED)
    assert returned
    assert size > 50 << 20  # of 100 MB


@glibc
def test_an_allocator_that_keeps_nothing_is_left_as_it_is():
    assert not kept_and_faults(RETURNED.replace("\nkeep_freed_memory()", "\n"))[0]


@glibc
def test_an_allocator_that_the_user_has_set_up_returns_nothing_for_us():
    assert not kept_and_faults(RETURNED, MALLOC_TRIM_THRESHOLD_="131072")[0]


@glibc
@pytest.mark.parametrize(
    ("name", "value"),
    [("MALLOC_TRIM_THRESHOLD_", "100000"), ("GLIBC_TUNABLES", "glibc.malloc.mmap_max=65536")],
)
def test_an_allocator_that_the_user_has_set_up_is_left_as_it_is(name, value):
    kept, faults = kept_and_faults(**{name: value})
    assert not kept
    assert faults > 100  # even where pages are huge


def test_another_c_library_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("musl", "1.2"))
    assert not malloc.keep_freed_memory.__wrapped__()
