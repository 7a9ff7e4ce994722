"""Public `Sandbox` class: a pool of worker processes that are started on first use.

A sandbox may be used from several threads. After a fork, the child starts workers of its own.
Pickles and copies hold only the configuration. Workers end when the process that owns them ends,
even if it is killed.
"""

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, astuple
from typing import Any

from mlrl_envs.errors import InfraError, InvalidArgumentError, OverloadedError, unknown_name
from mlrl_envs.sandbox.probing import known_tier_settings, remember_tier
from mlrl_envs.sandbox.program import Limits, Outcome, Program, Status, Tier
from mlrl_envs.sandbox.session import Reply, Script, Session
from mlrl_envs.sandbox.sessions.session_pool import SessionPool
from mlrl_envs.sandbox.worker.handle import WorkerHandle, WorkerLostError, lost_worker

__all__ = ["Sandbox"]

CACHE_SIZE = 4096
# Other statuses (deadlines, memory) may be caused by load on the machine and are not cached.
CACHED: tuple[Status, ...] = ("passed", "failed", "load_error", "protocol_violation", "hostile")
ATTEMPTS = 2
MAX_SOURCE = 32 << 20


class Sandbox:
    """Runs untrusted programs against trusted tests in confined processes.

    Args:
        workers: Number of programs that run in parallel.
        limits: Default limits of each program.
        minimum_tier: The weakest acceptable tier of confinement; None means C.
        allow_insecure: Whether to run programs on a host that cannot confine them (tier D).
        cache: Whether the outcome of a program is kept and returned for an equal program.

    Raises:
        InvalidArgumentError: If `workers` is not a positive integer, or the tier is unknown.
    """

    def __init__(
        self,
        workers: int = 2,
        limits: Limits | None = None,
        minimum_tier: Tier | None = None,
        *,
        allow_insecure: bool = False,
        cache: bool = True,
    ) -> None:
        if not isinstance(workers, int) or workers < 1:
            raise InvalidArgumentError(f"workers must be a positive integer, got {workers!r}")
        if minimum_tier not in (None, "A", "B", "C", "D"):
            raise unknown_name("tier", minimum_tier, "ABCD")
        self.workers = workers
        self.limits = limits or Limits()
        self.minimum_tier = minimum_tier
        self.allow_insecure = allow_insecure
        self.cache = cache
        self._reset_state()

    def _reset_state(self) -> None:
        self._lock = threading.Lock()
        self._free: list[WorkerHandle] = []
        self._slots = threading.BoundedSemaphore(self.workers)
        self._all: set[WorkerHandle] = set()
        self._outcomes: OrderedDict[Any, Outcome] = OrderedDict()
        self._pool: ThreadPoolExecutor | None = None
        self._sessions: SessionPool | None = None
        self._finalizer = weakref.finalize(self, _close_all, self._all)
        _instances.add(self)

    def run(self, program: Program) -> Outcome:
        """Run one program and return its outcome.

        Raises:
            InfraError: If no worker can be started, or all workers that run the program are lost.
            OverloadedError: If the machine is too busy to run the program, in every attempt.
            InvalidArgumentError: If the program's helpers raise an exception.
        """
        if len(program.source) > MAX_SOURCE:
            return Outcome(
                "load_error", 0, 1, error=f"a source of {len(program.source)} characters"
            )
        key = (program, astuple(self.limits)) if self.cache else None
        if key is not None and (known := self._outcomes.get(key)):
            return known
        outcome = self._run_uncached(program)
        if key is not None and outcome.status in CACHED:
            with self._lock:
                self._outcomes[key] = outcome
                if len(self._outcomes) > CACHE_SIZE:
                    self._outcomes.popitem(last=False)
        return outcome

    def run_many(self, programs: Iterable[Program]) -> list[Outcome]:
        """Run programs in parallel and return their outcomes in the same order.

        Raises:
            InfraError: As `run`.
            InvalidArgumentError: If the helpers of a program raise an exception. With several
                workers, all other programs have then been run.
        """
        batch: Sequence[Program] = list(programs)
        if len(batch) < 2 or self.workers == 1:
            return [self.run(program) for program in batch]
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.workers, "mlrl-sandbox")
            pool = self._pool
        futures = [pool.submit(self.run, program) for program in batch]
        try:
            errors = [error for future in futures if (error := future.exception())]
        except BaseException:  # an interrupt: cancel the programs that have not started
            for future in futures:
                future.cancel()
            raise
        if errors:
            raise errors[0]
        return [future.result() for future in futures]

    def session(
        self, files: Mapping[str, str] | None = None, seconds: float | None = None
    ) -> Session:
        """Return a new session: interpreters that keep their variables, and a directory of files.

        Args:
            files: Initial contents of the directory, by path.
            seconds: Time limit of one call; None for the `test_seconds` of the sandbox's limits.
        """
        return Session(self, files, seconds)

    def play_many(self, scripts: Sequence[Script]) -> list[list[Reply]]:
        """Play scripts of sessions in parallel and return their replies in the same order.

        Sessions have workers of their own, so that they do not wait for a batch of programs.

        Raises:
            InfraError: If no worker can be started, or a file call is made and the host's tier has
                no session files.
        """
        with self._lock:
            if self._sessions is None:
                self._sessions = SessionPool(self.workers, self.limits, self._settings())
            sessions = self._sessions
        return sessions.play_many(scripts)

    def close(self) -> None:
        """End all workers. If the sandbox is used again, it starts new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
            sessions, self._sessions = self._sessions, None
        if pool is not None:
            pool.shutdown(wait=True)
        if sessions is not None:
            sessions.close()
        with self._lock:
            self._free.clear()
            _close_all(self._all)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        names = ("workers", "limits", "minimum_tier", "allow_insecure", "cache")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset_state()

    def _run_uncached(self, program: Program) -> Outcome:
        with self._slots:
            for _attempt in range(ATTEMPTS):
                worker = self._take()
                try:
                    outcome = worker.run(program, program.limits or self.limits)
                except WorkerLostError as error:
                    self._drop(worker)
                    failure: InfraError = lost_worker(error)
                    continue
                except OverloadedError as error:
                    self._give_back(worker)
                    failure = error
                    continue
                except InvalidArgumentError:
                    self._give_back(worker)
                    raise
                except BaseException:
                    self._drop(worker)
                    raise
                self._give_back(worker)
                return outcome
        raise failure

    def _take(self) -> WorkerHandle:
        with self._lock:
            if self._free:
                return self._free.pop()
        worker = WorkerHandle({**self._settings(), **known_tier_settings()})
        remember_tier(worker.greeting)
        with self._lock:
            self._all.add(worker)
        return worker

    def _settings(self) -> dict[str, Any]:
        return {
            **asdict(self.limits),
            "minimum_tier": self.minimum_tier or "C",
            "allow_insecure": self.allow_insecure,
        }

    def _give_back(self, worker: WorkerHandle) -> None:
        with self._lock:
            self._free.append(worker)

    def _drop(self, worker: WorkerHandle) -> None:
        with self._lock:
            self._all.discard(worker)
        worker.close()

    def _after_fork(self) -> None:
        """In a forked child, release the parent's workers without ending them."""
        self._finalizer.detach()
        for worker in self._all:
            worker.abandon()
        if self._sessions is not None:
            self._sessions.abandon()
        self._reset_state()


def _close_all(workers: set[WorkerHandle]) -> None:
    """End workers: close all connections first, then wait for each process."""
    for worker in workers:
        worker.hang_up()
    for worker in workers:
        worker.close()
    workers.clear()


def _after_fork_in_child() -> None:
    for sandbox in list(_instances):
        sandbox._after_fork()  # noqa: SLF001  same module


_instances: "weakref.WeakSet[Sandbox]" = weakref.WeakSet()
os.register_at_fork(after_in_child=_after_fork_in_child)
