"""System calls that Python does not offer, through ctypes, and tables of call numbers.

Covers x86-64 and aarch64. On other architectures `NUMBERS` is empty, so no filter can be built.
"""

import ctypes
import os
import signal
from collections.abc import Callable

__all__ = [
    "ARCHITECTURE",
    "AUDIT_ARCH",
    "NUMBERS",
    "call",
    "call_named",
    "die_with_parent",
    "library",
    "prepared",
]

ARCHITECTURE = os.uname().machine
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}.get(ARCHITECTURE, 0)

# From the kernel's arch/x86/entry/syscalls/syscall_64.tbl.
X86_64 = """
read 0 write 1 open 2 close 3 stat 4 fstat 5 lstat 6 poll 7 lseek 8 mmap 9 mprotect 10 munmap 11
brk 12 rt_sigaction 13 rt_sigprocmask 14 rt_sigreturn 15 ioctl 16 pread64 17 pwrite64 18 readv 19
writev 20 access 21 pipe 22 select 23 sched_yield 24 mremap 25 msync 26 madvise 28 dup 32 dup2 33
pause 34 nanosleep 35 getitimer 36 alarm 37 setitimer 38 getpid 39 sendfile 40 sendto 44
recvfrom 45 sendmsg 46 recvmsg 47 getsockname 51 socketpair 53 getsockopt 55 clone 56 wait4 61
kill 62 exit 60 uname 63 fcntl 72 flock 73 fsync 74 fdatasync 75 truncate 76 ftruncate 77
getdents 78 getcwd 79 chdir 80 fchdir 81 rename 82 mkdir 83 rmdir 84 creat 85 link 86 unlink 87
symlink 88 readlink 89 chmod 90 fchmod 91 umask 95 gettimeofday 96 getrlimit 97 getrusage 98
sysinfo 99 times 100 ptrace 101 getuid 102 getgid 104 geteuid 107 getegid 108 getppid 110
getpgrp 111 getgroups 115 getresuid 118 getresgid 120 getpgid 121 getsid 124 capset 126
rt_sigpending 127 rt_sigtimedwait 128 rt_sigsuspend 130 sigaltstack 131 utime 132 mknod 133
statfs 137 fstatfs 138 getpriority 140 pivot_root 155 prctl 157 arch_prctl 158 setrlimit 160
chroot 161 acct 163 settimeofday 164 mount 165 umount2 166 swapon 167 reboot 169 sethostname 170
iopl 172 ioperm 173 init_module 175 delete_module 176 quotactl 179 gettid 186 tkill 200 time 201
futex 202 sched_setaffinity 203 sched_getaffinity 204 epoll_create 213 getdents64 217
set_tid_address 218 restart_syscall 219 fadvise64 221 clock_gettime 228 clock_getres 229
clock_nanosleep 230 exit_group 231 epoll_wait 232 epoll_ctl 233 tgkill 234 utimes 235
kexec_load 246 add_key 248 request_key 249 keyctl 250 openat 257 mkdirat 258 newfstatat 262
unlinkat 263 renameat 264 linkat 265 symlinkat 266 readlinkat 267 fchmodat 268 faccessat 269
pselect6 270 ppoll 271 unshare 272 set_robust_list 273 utimensat 280 epoll_pwait 281 fallocate 285
eventfd2 290 epoll_create1 291 dup3 292 pipe2 293 preadv 295 pwritev 296 perf_event_open 298
prlimit64 302 name_to_handle_at 303 open_by_handle_at 304 setns 308 getcpu 309
process_vm_readv 310 process_vm_writev 311 finit_module 313 renameat2 316 seccomp 317
getrandom 318 kexec_file_load 320 bpf 321 userfaultfd 323 membarrier 324 copy_file_range 326
statx 332 rseq 334 pidfd_send_signal 424 io_uring_setup 425 io_uring_enter 426
io_uring_register 427 open_tree 428 move_mount 429 fsopen 430 fsconfig 431 fsmount 432 fspick 433
pidfd_open 434 clone3 435 close_range 436 openat2 437 pidfd_getfd 438 faccessat2 439
process_madvise 440 mount_setattr 442 landlock_create_ruleset 444 landlock_add_rule 445
landlock_restrict_self 446
"""
# From include/uapi/asm-generic/unistd.h.
AARCH64 = """
getcwd 17 epoll_create1 20 epoll_ctl 21 epoll_pwait 22 dup 23 dup3 24 fcntl 25 ioctl 29 flock 32
mknodat 33 mkdirat 34 unlinkat 35 symlinkat 36 linkat 37 renameat 38 umount2 39 mount 40
pivot_root 41 statfs 43 fstatfs 44 truncate 45 ftruncate 46 fallocate 47 faccessat 48 chdir 49
fchdir 50 chroot 51 fchmod 52 fchmodat 53 openat 56 close 57 pipe2 59 quotactl 60 getdents64 61
lseek 62 read 63 write 64 readv 65 writev 66 pread64 67 pwrite64 68 preadv 69 pwritev 70
sendfile 71 pselect6 72 ppoll 73 readlinkat 78 newfstatat 79 fstat 80 fsync 82 fdatasync 83
utimensat 88 acct 89 capset 91 exit 93 exit_group 94 set_tid_address 96 unshare 97 futex 98
set_robust_list 99 nanosleep 101 getitimer 102 setitimer 103 kexec_load 104 init_module 105
delete_module 106 clock_gettime 113 clock_getres 114 clock_nanosleep 115 ptrace 117
sched_setaffinity 122 sched_getaffinity 123 sched_yield 124 restart_syscall 128 kill 129 tkill 130
tgkill 131 sigaltstack 132 rt_sigsuspend 133 rt_sigaction 134 rt_sigprocmask 135 rt_sigpending 136
rt_sigtimedwait 137 rt_sigreturn 139 getpriority 141 reboot 142 getresuid 148 getresgid 150
times 153 getpgid 155 getsid 156 getgroups 158 uname 160 sethostname 161 getrlimit 163
setrlimit 164 getrusage 165 umask 166 prctl 167 getcpu 168 gettimeofday 169 settimeofday 170
getpid 172 getppid 173 getuid 174 geteuid 175 getgid 176 getegid 177 gettid 178 sysinfo 179
socketpair 199 getsockname 204 sendto 206 recvfrom 207 getsockopt 209 sendmsg 211 recvmsg 212
brk 214 munmap 215 mremap 216 add_key 217 request_key 218 keyctl 219 clone 220 mmap 222
fadvise64 223 swapon 224 mprotect 226 msync 227 madvise 233 perf_event_open 241 wait4 260
prlimit64 261 name_to_handle_at 264 open_by_handle_at 265 setns 268 process_vm_readv 270
process_vm_writev 271 finit_module 273 renameat2 276 seccomp 277 getrandom 278 bpf 280
userfaultfd 282 membarrier 283 copy_file_range 285 statx 291 rseq 293 kexec_file_load 294
pidfd_send_signal 424 io_uring_setup 425 io_uring_enter 426 io_uring_register 427 open_tree 428
move_mount 429 fsopen 430 fsconfig 431 fsmount 432 fspick 433 pidfd_open 434 clone3 435
close_range 436 openat2 437 pidfd_getfd 438 faccessat2 439 process_madvise 440 mount_setattr 442
eventfd2 19 landlock_create_ruleset 444 landlock_add_rule 445 landlock_restrict_self 446
"""


def _numbers(table: str) -> dict[str, int]:
    words = table.split()
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


NUMBERS = _numbers({"x86_64": X86_64, "aarch64": AARCH64}.get(ARCHITECTURE, ""))
library = ctypes.CDLL(None, use_errno=True)
library.syscall.restype = ctypes.c_long


def call(name: str, *arguments: object) -> int:
    """Make a system call, given by name.

    Raises:
        OSError: If the call fails; ENOSYS if its number is unknown on this architecture.
    """
    if name not in NUMBERS:
        raise OSError(38, f"the number of {name} is not known on {ARCHITECTURE}")
    return call_named(name, library.syscall, ctypes.c_long(NUMBERS[name]), *arguments)


def call_named(name: str, function: object, *arguments: object) -> int:
    """Call a C function that returns -1 and sets errno if it fails.

    Args:
        name: Name for the error message.
        function: The C function.
        arguments: Its arguments.

    Raises:
        OSError: If the function returns -1.
    """
    result = int(function(*arguments))  # type: ignore[operator]
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def prepared(name: str, *arguments: object) -> Callable[[], None]:
    """Return a function that makes a system call with little overhead.

    Raises:
        OSError: Raised by the returned function if the call fails.
    """
    number, syscall = ctypes.c_long(NUMBERS[name]), library.syscall

    def make() -> None:
        if syscall(number, *arguments) == -1:
            raise OSError(ctypes.get_errno(), name)

    return make


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies (Linux only)."""
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, KILL, 0, 0, 0)


_prctl = getattr(library, "prctl", None)  # Linux only
PR_SET_PDEATHSIG = 1
KILL = int(signal.SIGKILL)
