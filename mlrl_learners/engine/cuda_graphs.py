"""CUDA graphs: GPU work recorded once and replayed by one launch instead of hundreds.

A graph replays the same kernels on the same memory. Recorded work must therefore read its inputs
from tensors that stay allocated, have fixed shapes, and never synchronize with the CPU.

Source: `torch.cuda.CUDAGraph`.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

__all__ = ["GraphRecorder"]

T = TypeVar("T")


class GraphRecorder:
    """Records work of one model; stops for good when it cannot be recorded.

    Args:
        device: GPU of the model.

    Attributes:
        usable: Whether no recording has failed yet.
    """

    def __init__(self, device: torch.device) -> None:
        self.usable = True
        self._device = device
        self._stream: torch.cuda.Stream | None = None

    def warm_up(self, work: Callable[[], T], *, last: bool) -> T:
        """Run the work on the recording stream, so that kernels and caches are initialised.

        Args:
            work: Work that is recorded later.
            last: Whether this is the last run before recording: it must not synchronize any more.
        """
        stream = self._side_stream()
        here = torch.cuda.current_stream(self._device)
        stream.wait_stream(here)
        with torch.cuda.stream(stream), self._without_syncs() if last else contextlib.nullcontext():
            result = work()
        # The side stream reuses its memory only after it has waited for this stream.
        here.wait_stream(stream)
        return result

    def record(self, work: Callable[[], T], *, required: bool = True) -> Callable[[], T] | None:
        """Return a function that repeats the work and returns the same tensors.

        Recording computes nothing. If it fails, there is a warning and the result is None.

        Args:
            work: Work that reads and writes the same memory each time.
            required: Whether nothing is recorded any more after a failure.
        """
        if self.usable:
            try:
                return self._capture(work)
            except RuntimeError as error:
                reason = str(error).splitlines()[0]
                if required:
                    self._give_up(reason)
                else:
                    warnings.warn(f"not recorded: {reason}", RuntimeWarning, stacklevel=2)
        return None

    def _capture(self, work: Callable[[], T]) -> Callable[[], T]:
        with torch.cuda.device(self._device):
            graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
            here = torch.cuda.current_stream()
            recording = torch.cuda.graph(
                graph, pool=pool, stream=self._side_stream(), capture_error_mode="thread_local"
            )
            try:
                with recording:
                    result = work()
            except RuntimeError:
                _undo_capture(here, pool)
                raise

        def replay() -> T:
            graph.replay()
            return result

        return replay

    def _side_stream(self) -> torch.cuda.Stream:
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device)
        return self._stream

    @contextlib.contextmanager
    def _without_syncs(self) -> Iterator[None]:
        """Give up if the block synchronizes; checked before a capture, which is hard to undo."""
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                yield
            finally:
                torch.cuda.set_sync_debug_mode(before)
        if any("called a synchronizing" in str(warning.message) for warning in caught):
            self._give_up("the model waits for the GPU while it computes")

    def _give_up(self, reason: str) -> None:
        self.usable = False
        message = f"decoding continues without CUDA graphs, which is slower: {reason}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def _undo_capture(stream: torch.cuda.Stream, pool: tuple[int, int]) -> None:
    """Restore stream and memory pool after a failed capture, which `torch.cuda.graph` does not."""
    torch.cuda.set_stream(stream)
    end, release = (
        getattr(torch._C, f"_cuda_{name}", None)  # noqa: SLF001 - nothing public does
        for name in ("endAllocateToPool", "releasePool")
    )
    if end is not None and release is not None:
        with contextlib.suppress(RuntimeError):  # ended already: the graph releases it
            end(stream.device_index, pool)
            release(stream.device_index, pool)
