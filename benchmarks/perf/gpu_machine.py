"""Peak bandwidth and FLOP/s of a GPU, and timing of work on it."""

import platform
import time
from collections.abc import Callable, Iterator

import torch

from benchmarks.perf.common import peak_rss_mib

__all__ = ["bandwidth", "hardware", "product_flops", "timed", "wait"]


def timed(work: Callable[[], int], device: str, *, rounds: int) -> Iterator[tuple[int, float]]:
    """Yield the result of the work and its seconds, after one unmeasured round."""
    for number in range(-1, rounds):
        wait(device)
        start = time.perf_counter()
        found = work()
        wait(device)
        if number >= 0:
            yield found, time.perf_counter() - start


def bandwidth(device: str) -> float:
    """Return the bytes per second that a copy moves: those it reads and those it writes."""
    numbers = torch.empty((1 << 28) if device == "cuda" else (1 << 22), device=device)
    target = torch.empty_like(numbers)
    seconds = min(
        seconds for _, seconds in timed(lambda: len(target.copy_(numbers)), device, rounds=5)
    )
    return 2 * numbers.numel() * numbers.element_size() / seconds


def product_flops(device: str) -> float:
    """Return the FLOP/s of a large bfloat16 matrix product."""
    size = 8192 if device == "cuda" else 256
    left = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    seconds = min(seconds for _, seconds in timed(lambda: len(left @ left), device, rounds=5))
    return 2 * size**3 / seconds


def wait(device: str) -> None:
    """Wait until the device is idle."""
    if device == "cuda":
        torch.cuda.synchronize()


def hardware(device: str) -> dict[str, object]:
    """Return facts about the machine, and the peak memory."""
    if device != "cuda":
        return {"processor": platform.processor(), "cores": torch.get_num_threads()}
    facts = torch.cuda.get_device_properties(0)
    return {
        "processor": facts.name,
        "cores": torch.get_num_threads(),
        "memory_gib": round(facts.total_memory / 2**30, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "peak_gpu_mib": round(torch.cuda.max_memory_allocated() / 2**20),
        "peak_rss_mib": peak_rss_mib(),
    }
