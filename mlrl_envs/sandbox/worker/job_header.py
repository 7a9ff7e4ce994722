"""Binary header of a job: the kind of its tests and the limits of its program.

The owner sends each job to its worker as one byte (`STATELESS` or `STATEFUL`), the packed
`JobLimits`, and a JSON object with the remaining fields of the `Program`.
"""

import struct
from typing import NamedTuple

__all__ = ["LIMITS_SIZE", "STATEFUL", "STATELESS", "JobLimits"]

STATELESS, STATEFUL = b"+", b"-"  # whether a reused judge process may run the tests
FORM = struct.Struct("=7d")
LIMITS_SIZE = FORM.size


class JobLimits(NamedTuple):
    """Limits of one program; the fields are those of `Limits`, in the same order."""

    wall_seconds: float
    load_seconds: float
    test_seconds: float
    cpu_seconds: float
    memory_mib: float
    output_kib: float
    max_stretch: float

    def pack(self) -> bytes:
        """Return the limits as `LIMITS_SIZE` bytes."""
        return FORM.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> "JobLimits":
        """Return the limits stored in the first `LIMITS_SIZE` bytes of `data`."""
        return cls(*FORM.unpack_from(data))

    @property
    def output_bytes(self) -> int:
        """Number of bytes of standard output that are kept."""
        return int(self.output_kib * 1024)
