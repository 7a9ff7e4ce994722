"""Limits as they travel from owner to worker to candidate: six numbers in front of each job."""

import struct
from typing import NamedTuple

__all__ = ["SIZE", "Allowance"]

FORM = struct.Struct("=6d")
SIZE = FORM.size


class Allowance(NamedTuple):
    """What one program may use; the fields are those of `Limits`, in the same order."""

    wall_seconds: float
    load_seconds: float
    test_seconds: float
    cpu_seconds: float
    memory_mib: float
    output_kib: float

    def pack(self) -> bytes:
        """Return the numbers as `SIZE` bytes."""
        return FORM.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> "Allowance":
        """Return what the first `SIZE` bytes of a job say."""
        return cls(*FORM.unpack_from(data))

    @property
    def output_bytes(self) -> int:
        """Standard output that is kept."""
        return int(self.output_kib * 1024)
