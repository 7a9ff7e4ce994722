"""Memory of a process on a CPU: kept when freed, so that the next step need not ask for it."""

import ctypes
import functools
import os
import platform

__all__ = ["keep_freed_memory"]

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of <malloc.h>
NEVER = -1  # the largest size there is
# Whoever has set the allocator up by one of these is not overruled.
CHOICES = ("MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")


@functools.cache
def keep_freed_memory() -> bool:
    """Let glibc reuse freed blocks of any size, and return whether it does.

    By default each tensor above 32 MB is mapped when it is made and unmapped when it is freed, and
    the system clears its pages one by one: a step of training frees and asks for gigabytes. Kept,
    memory stays with the process at the most it has needed, as it does on a GPU. It holds for the
    whole process, and for blocks above 64 MB in its main thread. Any of glibc's own settings of
    this (`MALLOC_TRIM_THRESHOLD_=131072`, say) leaves all as it is.
    """
    if platform.libc_ver()[0] != "glibc" or _is_chosen():
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, NEVER))


def _is_chosen() -> bool:
    preloaded = os.environ.get("LD_PRELOAD", "")
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    settings = ("malloc.mmap_", "malloc.trim_", "malloc.hugetlb")
    return (
        any(name in os.environ for name in CHOICES)
        or any(setting in tunables for setting in settings)
        or "malloc" in preloaded  # jemalloc, tcmalloc, mimalloc
    )
