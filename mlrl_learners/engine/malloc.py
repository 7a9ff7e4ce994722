"""Settings of glibc's allocator: freed blocks are kept for the steps of an update."""

import ctypes
import functools
import os
import platform

__all__ = ["keep_freed_memory", "return_free_memory"]

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of <malloc.h>
NEVER = -1  # the largest size
# Environment variables by which a user has configured the allocator; they take precedence.
CHOICES = ("MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")


@functools.cache
def keep_freed_memory() -> bool:
    """Let glibc reuse freed blocks of any size, and return whether it does.

    By default every tensor above 32 MB is mapped when it is allocated and unmapped when it is
    freed, and the kernel clears its pages one by one; a training step frees and allocates
    gigabytes. With this setting the process keeps its peak memory, as it does on a GPU, until
    `return_free_memory` returns what is free. The setting applies to the whole process,
    and to blocks above 64 MB in its main thread only. Any of glibc's own settings (such as
    `MALLOC_TRIM_THRESHOLD_=131072`) leaves the allocator unchanged.
    """
    if platform.libc_ver()[0] != "glibc" or _is_configured():
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, NEVER))


def return_free_memory(at_least: int = 1 << 30) -> bool:
    """Return free pages to the kernel, and whether this was done.

    Nothing is done where `keep_freed_memory` was not called, as with models on a GPU. Heaps of
    tensors of many sizes are fragmented: without this, the memory of a long training grows beyond
    the peak of its largest update.

    Args:
        at_least: Free bytes of all heaps, 0 or more, below which nothing is done: small models
            lose no time.
    """
    is_kept = keep_freed_memory.cache_info().currsize > 0 and keep_freed_memory()
    libc = ctypes.CDLL(None)
    if not is_kept or not hasattr(libc, "mallinfo2"):  # glibc 2.33
        return False
    libc.mallinfo2.restype = _Mallinfo
    if libc.mallinfo2().fordblks < at_least:
        return False
    libc.malloc_trim.argtypes = [ctypes.c_size_t]
    return bool(libc.malloc_trim(0))


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of <malloc.h>."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def _is_configured() -> bool:
    preloaded = os.environ.get("LD_PRELOAD", "")
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    settings = ("malloc.mmap_", "malloc.trim_", "malloc.hugetlb")
    return (
        any(name in os.environ for name in CHOICES)
        or any(setting in tunables for setting in settings)
        or "malloc" in preloaded  # jemalloc, tcmalloc, mimalloc
    )
