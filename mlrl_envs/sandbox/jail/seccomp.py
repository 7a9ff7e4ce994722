"""System call filters (seccomp BPF): one for zygotes and their children, one more for candidates.

The first filter is an allow-list, compiled to a binary search over call numbers. A few calls that
no honest program makes kill the process; every other call that is not listed fails with EPERM. The
second filter removes calls that only zygotes need: forking, signals, passing descriptors, and
installing filters.
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
# Calls that are allowed only for some values of one argument: (index of argument, values).
CHECKED = {
    "ioctl": (1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
    "prlimit64": (0, (0,)),
    "socketpair": (0, (1,)),
}
# Commands of `fcntl` that make the kernel send signals on behalf of the process.
FCNTL_REFUSED = (8, 10, 15, 1024)
# Calls refused in tiers without a private file system, where nothing may be written.
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
    """A filter in the form that the kernel takes.

    Attributes:
        length: Number of instructions.
    """

    def __init__(self, instructions: list[Instruction]) -> None:
        packed = b"".join(struct.pack("=HBBI", *item) for item in instructions)
        self._code = ctypes.create_string_buffer(packed, len(packed))
        program = struct.pack("@HP", len(instructions), ctypes.addressof(self._code))
        self._program = ctypes.create_string_buffer(program, len(program))
        address = ctypes.c_void_p(ctypes.addressof(self._program))
        self._install = prepared("seccomp", ctypes.c_long(FILTER_MODE), ctypes.c_long(0), address)
        self.length = len(instructions)

    def install(self) -> None:
        """Install the filter on this process; it cannot be removed.

        Raises:
            OSError: If the kernel refuses it.
        """
        self._install()


def zygote_filter(*, writes: bool = True, private: bool = True) -> Filter:
    """Return the filter of the zygotes and all their children.

    Args:
        writes: Whether files may be opened for writing; Landlock and mounts decide which files.
        private: Whether the file system is private to the worker. If not, calls that change a
            file's mode or times are refused, because Landlock does not check them.
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
    leaves[_number("clone3")] = [_return(ENOSYS)]  # glibc then uses clone, whose flags are checked
    leaves.pop(-1, None)
    return Filter([*_same_architecture(), *_search(sorted(leaves.items()))])


def candidate_filter() -> Filter:
    """Return the second filter of candidates: they may create threads, but no processes."""
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
    """Kill calls of another architecture and of the x32 ABI; the call number stays loaded."""
    return [
        (LOAD, 0, 0, ARCH),
        (JUMP_EQ, 1, 0, AUDIT_ARCH),
        _return(KILL),
        (LOAD, 0, 0, NUMBER),
        (JUMP_GE, 0, 1, X32),
        _return(KILL),
    ]


def _only(index: int, values: tuple[int, ...], otherwise: int) -> list[Instruction]:
    """Allow a call if all 64 bits of an argument equal one of the values."""
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
    """Refuse a call if the lower 32 bits of an argument equal one of the values.

    The kernel ignores the upper half of this argument.
    """
    body: list[Instruction] = [(LOAD, 0, 0, ARGUMENT + 8 * index)]
    for value in values:
        body += [(JUMP_EQ, 0, 1, value), _return(EPERM)]
    return [*body, _return(ALLOW)]


def _reading(index: int) -> list[Instruction]:
    """Allow an `open` that asks only for reading."""
    return [
        (LOAD, 0, 0, ARGUMENT + 8 * index),
        (JUMP_SET, 0, 1, WRITE_FLAGS),
        _return(EPERM),
        _return(ALLOW),
    ]


def _search(leaves: list[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """Return a binary search over sorted call numbers; numbers that are not found are refused.

    Neighbouring numbers with the same answer share a leaf. A conditional jump has 8 bits for its
    distance; longer branches use an additional unconditional jump.
    """
    return _branch(_ranges(leaves))


Range = tuple[int, list[Instruction]]  # first number, answer


def _ranges(leaves: list[tuple[int, list[Instruction]]]) -> list[Range]:
    """Return the ranges of consecutive numbers with the same answer."""
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
