"""System call filters: one for zygotes and what they fork, one more for candidates.

The first is an allow-list found by binary search; a few calls that no honest program makes kill
the process at once, everything else that is not listed is refused with EPERM. The second takes
from candidates what zygotes need: forking, signals, passing descriptors, more filters.
"""

import ctypes
import struct

from mlrl_envs.sandbox.jail.syscalls import AUDIT_ARCH, NUMBERS, prepared

__all__ = ["Filter", "candidate_filter", "zygote_filter"]

LOAD, JUMP_EQ, JUMP_GE, JUMP_SET, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
KILL, ALLOW = 0x80000000, 0x7FFF0000
EPERM, ENOSYS = 0x00050000 | 1, 0x00050000 | 38
NUMBER, ARCH, ARGUMENT = 0, 4, 16
X32 = 0x40000000
FILTER_MODE = 1

ALLOWED = """
read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction
rt_sigprocmask rt_sigreturn pread64 pwrite64 readv writev access pipe select sched_yield mremap
msync madvise dup dup2 pause nanosleep getitimer alarm setitimer getpid sendfile sendto recvfrom
sendmsg recvmsg clone wait4 kill exit uname flock fsync fdatasync truncate ftruncate getdents
getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink readlink chmod fchmod umask
gettimeofday getrlimit getrusage sysinfo times getuid getgid geteuid getegid getppid getpgrp
getgroups getresuid getresgid getpgid getsid rt_sigpending rt_sigtimedwait rt_sigsuspend
sigaltstack utime statfs fstatfs getpriority prctl arch_prctl setrlimit gettid tkill time futex
sched_getaffinity sched_setaffinity epoll_create getdents64 set_tid_address restart_syscall
getsockname getsockopt fadvise64 clock_gettime clock_getres clock_nanosleep exit_group epoll_wait
epoll_ctl tgkill utimes openat mkdirat newfstatat unlinkat renameat linkat symlinkat readlinkat
fchmodat faccessat pselect6 ppoll set_robust_list utimensat epoll_pwait fallocate eventfd2
epoll_create1 dup3 pipe2 preadv pwritev getcpu renameat2 seccomp getrandom membarrier
copy_file_range statx rseq close_range openat2 faccessat2
"""
KILLED = """
ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd
io_uring_setup io_uring_enter io_uring_register bpf keyctl add_key request_key
mount umount2 pivot_root chroot unshare setns open_tree move_mount fsopen fsconfig fsmount
fspick mount_setattr init_module finit_module delete_module kexec_load kexec_file_load
perf_event_open userfaultfd open_by_handle_at reboot swapon acct quotactl iopl ioperm
settimeofday
"""
# Calls that are allowed for some values of one argument only: (index of argument, values).
CHECKED = {
    "ioctl": (1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
    "prlimit64": (0, (0,)),
    "socketpair": (0, (1,)),
}
# fcntl without those commands that make the kernel send signals for us.
FCNTL_REFUSED = (8, 10, 15, 1024)
# Without a private file system nothing is written at all.
WRITING = """
truncate rename mkdir rmdir creat link unlink symlink chmod fchmod utime utimes mkdirat unlinkat
renameat renameat2 linkat symlinkat fchmodat utimensat
"""
METADATA = "truncate chmod fchmod utime utimes fchmodat utimensat"
WRITE_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000  # WRONLY RDWR CREAT TRUNC TMPFILE
PTHREAD_FLAGS = (0x3D0F00, 0x7D0F00)  # glibc's, musl's
CANDIDATE_REFUSED = "kill tkill tgkill sendmsg recvmsg seccomp prctl wait4 sched_setaffinity"
Instruction = tuple[int, int, int, int]


class Filter:
    """A filter in the form the kernel takes."""

    def __init__(self, instructions: list[Instruction]) -> None:
        packed = b"".join(struct.pack("=HBBI", *item) for item in instructions)
        self._code = ctypes.create_string_buffer(packed, len(packed))
        program = struct.pack("@HP", len(instructions), ctypes.addressof(self._code))
        self._program = ctypes.create_string_buffer(program, len(program))
        address = ctypes.c_void_p(ctypes.addressof(self._program))
        self._install = prepared("seccomp", ctypes.c_long(FILTER_MODE), ctypes.c_long(0), address)
        self.length = len(instructions)

    def install(self) -> None:
        """Put it on this process, for good.

        Raises:
            OSError: If the kernel refuses it.
        """
        self._install()


def zygote_filter(*, writes: bool = True, private: bool = True) -> Filter:
    """Return the filter every zygote and all its children live under.

    Args:
        writes: Whether files may be opened for writing; Landlock and mounts then say which.
        private: Whether the whole file system is a private one. Landlock does not look at calls
            that change a file's mode or times, so elsewhere they are refused.
    """
    leaves: dict[int, list[Instruction]] = {}
    for name in KILLED.split():
        leaves[_number(name)] = [_return(KILL)]
    for name in ALLOWED.split():
        leaves[_number(name)] = [_return(ALLOW)]
    for name, (index, values) in CHECKED.items():
        leaves[_number(name)] = _only(index, values, EPERM)
    leaves[_number("fcntl")] = _except(1, FCNTL_REFUSED)
    if not writes:
        for name in WRITING.split():
            leaves[_number(name)] = [_return(EPERM)]
        leaves[_number("open")] = _reading(1)
        leaves[_number("openat")] = _reading(2)
        leaves[_number("openat2")] = [_return(ENOSYS)]
    if not private:
        for name in METADATA.split():
            leaves[_number(name)] = [_return(EPERM)]
    leaves[_number("clone3")] = [_return(ENOSYS)]  # so that glibc falls back on clone
    leaves.pop(-1, None)
    return Filter([*_same_architecture(), *_search(sorted(leaves.items()))])


def candidate_filter() -> Filter:
    """Return the filter a candidate adds: threads may be made, processes may not."""
    body: list[Instruction] = [(LOAD, 0, 0, NUMBER)]
    for name in CANDIDATE_REFUSED.split():
        body += [(JUMP_EQ, 0, 1, _number(name)), _return(EPERM)]
    threads = _only(0, PTHREAD_FLAGS, EPERM)
    body += [(JUMP_EQ, 0, len(threads), _number("clone")), *threads, _return(ALLOW)]
    return Filter(body)


def _number(name: str) -> int:
    return NUMBERS.get(name, -1)


def _return(value: int) -> Instruction:
    return (RETURN, 0, 0, value)


def _same_architecture() -> list[Instruction]:
    """Kill calls of another architecture and of the x32 ABI; leave the number loaded."""
    return [
        (LOAD, 0, 0, ARCH),
        (JUMP_EQ, 1, 0, AUDIT_ARCH),
        _return(KILL),
        (LOAD, 0, 0, NUMBER),
        (JUMP_GE, 0, 1, X32),
        _return(KILL),
    ]


def _only(index: int, values: tuple[int, ...], otherwise: int) -> list[Instruction]:
    """Allow if an argument is one of a few values (all 64 bits of it)."""
    body: list[Instruction] = [
        (LOAD, 0, 0, ARGUMENT + 8 * index + 4),
        (JUMP_EQ, 1, 0, 0),
        _return(otherwise),
        (LOAD, 0, 0, ARGUMENT + 8 * index),
    ]
    for value in values:
        body += [(JUMP_EQ, 0, 1, value), _return(ALLOW)]
    return [*body, _return(otherwise)]


def _except(index: int, values: tuple[int, ...]) -> list[Instruction]:
    """Refuse if an argument's lower half, all that the kernel looks at, is one of a few values."""
    body: list[Instruction] = [(LOAD, 0, 0, ARGUMENT + 8 * index)]
    for value in values:
        body += [(JUMP_EQ, 0, 1, value), _return(EPERM)]
    return [*body, _return(ALLOW)]


def _reading(index: int) -> list[Instruction]:
    """Allow an open that asks for reading alone."""
    return [
        (LOAD, 0, 0, ARGUMENT + 8 * index),
        (JUMP_SET, 0, 1, WRITE_FLAGS),
        _return(EPERM),
        _return(ALLOW),
    ]


def _search(leaves: list[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """Return a binary search over sorted call numbers; what is not found is refused.

    Neighbours with the same answer share one leaf. A branch too long for a conditional jump's
    8 bits goes through an unconditional one.
    """
    return _branch(_ranges(leaves))


Range = tuple[int, list[Instruction]]


def _ranges(leaves: list[tuple[int, list[Instruction]]]) -> list[Range]:
    """Return (first number, answer) for every stretch of numbers with one answer."""
    refused = [_return(EPERM)]
    ranges: list[Range] = [(0, refused)]
    for number, answer in leaves:
        for start, body in ((number, answer), (number + 1, refused)):
            if ranges[-1][0] == start:
                ranges.pop()
            if not ranges or ranges[-1][1] != body:
                ranges.append((start, body))
    return ranges


def _branch(ranges: list[Range]) -> list[Instruction]:
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    low, high = _branch(ranges[:middle]), _branch(ranges[middle:])
    pivot = ranges[middle][0]
    if len(low) <= 255:
        return [(JUMP_GE, len(low), 0, pivot), *low, *high]
    return [(JUMP_GE, 0, 1, pivot), (0x05, 0, 0, len(low)), *low, *high]
