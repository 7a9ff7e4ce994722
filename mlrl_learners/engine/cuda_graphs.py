"""Work on a GPU recorded once as a CUDA graph and replayed: one launch instead of hundreds.

A graph replays the same kernels on the same places in memory. What is recorded must therefore read
its inputs from tensors that stay, have equal shapes each time, and never let the processor wait.

Source: `torch.cuda.CUDAGraph`.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

__all__ = ["GraphRecorder"]

Work = Callable[[], Tensor]


class GraphRecorder:
    """Records work of one model; gives up for good on what cannot be recorded.

    Args:
        device: The GPU that the model is on.
    """

    def __init__(self, device: torch.device) -> None:
        self.usable = True
        self._device = device
        self._stream: torch.cuda.Stream | None = None

    def warm_up(self, work: Work, *, last: bool) -> Tensor:
        """Do the work where it is going to be recorded, so that kernels and caches are there.

        Args:
            work: What is going to be recorded.
            last: Whether nothing is new to it any more: now it may not wait for the GPU.
        """
        stream = self._side_stream()
        here = torch.cuda.current_stream(self._device)
        stream.wait_stream(here)
        with torch.cuda.stream(stream), self._watched() if last else contextlib.nullcontext():
            result = work()
        # Its memory is taken again on that stream alone, which waits for this one beforehand.
        here.wait_stream(stream)
        return result

    def record(self, work: Work) -> Work | None:
        """Return what does the work again, into the same tensor; None, and a warning, if it cannot.

        Nothing has been computed then, or when it is recorded.
        """
        if self.usable:
            try:
                return self._capture(work)
            except RuntimeError as error:
                self._give_up(str(error).splitlines()[0])
        return None

    def _capture(self, work: Work) -> Work:
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
                _clear_up(here, pool)
                raise

        def replay() -> Tensor:
            graph.replay()
            return result

        return replay

    def _side_stream(self) -> torch.cuda.Stream:
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device)
        return self._stream

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Give up if the block lets the processor wait: a capture that fails leaves traces."""
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                yield
            finally:
                torch.cuda.set_sync_debug_mode(before)
        if any("called a synchronizing" in str(warning.message) for warning in said):
            self._give_up("the model waits for the GPU while it computes")

    def _give_up(self, reason: str) -> None:
        self.usable = False
        message = f"decoding goes on without CUDA graphs, which is slower: {reason}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def _clear_up(stream: torch.cuda.Stream, pool: tuple[int, int]) -> None:
    """Undo what a failed capture leaves: `torch.cuda.graph` tidies up only after itself."""
    torch.cuda.set_stream(stream)
    end, release = (
        getattr(torch._C, f"_cuda_{name}", None)  # noqa: SLF001 - nothing public does
        for name in ("endAllocateToPool", "releasePool")
    )
    if end is not None and release is not None:
        with contextlib.suppress(RuntimeError):  # it had been ended: the graph releases it
            end(stream.device_index, pool)
            release(stream.device_index, pool)
