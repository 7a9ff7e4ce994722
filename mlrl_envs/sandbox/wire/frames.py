"""Length-prefixed frames over stream sockets, with file descriptors beside the first byte."""

import os
import socket
import struct

__all__ = ["FrameError", "receive", "receive_with_descriptors", "send", "send_with_descriptors"]

HEADER = struct.Struct("!I")
CHUNK = 1 << 16
BIG_CHUNK = 1 << 20


class FrameError(Exception):
    """The peer hung up in mid-frame or announced a frame beyond the cap."""


def send(link: int, payload: bytes) -> None:
    """Send one frame through a descriptor."""
    rest = memoryview(HEADER.pack(len(payload)) + payload)
    while rest:
        rest = rest[os.write(link, rest) :]


def receive(link: int, cap: int) -> bytes | None:
    """Return the next frame, or None if the peer hung up between frames.

    Raises:
        FrameError: If the frame is longer than `cap`, breaks off, or is followed by more.
    """
    first = os.read(link, CHUNK)
    if not first:
        return None
    while len(first) < HEADER.size:
        first += _more(link, CHUNK)
    (size,) = HEADER.unpack_from(first)
    if size > cap:
        raise FrameError(f"a frame of {size} bytes is over the cap of {cap}")
    if len(first) == HEADER.size + size:
        return first[HEADER.size :]
    return _receive_rest(link, first[HEADER.size :], size)


def _receive_rest(link: int, begun: bytes, size: int) -> bytes:
    if len(begun) > size:
        raise FrameError("bytes beyond the end of a frame")
    buffer = bytearray(begun)
    while len(buffer) < size:
        buffer += _more(link, min(size - len(buffer), BIG_CHUNK))
    return bytes(buffer)


def _more(link: int, size: int) -> bytes:
    more = os.read(link, size)
    if not more:
        raise FrameError("the peer hung up inside a frame")
    return more


def send_with_descriptors(link: socket.socket, payload: bytes, descriptors: list[int]) -> None:
    """Send one frame and, beside its header, open file descriptors."""
    socket.send_fds(link, [HEADER.pack(len(payload))], descriptors)
    if payload:
        link.sendall(payload)


def receive_with_descriptors(link: socket.socket, count: int) -> tuple[bytes, list[int]] | None:
    """Return the next frame and its descriptors, or None if the peer hung up.

    Raises:
        FrameError: If the frame breaks off.
    """
    header, descriptors, _flags, _address = socket.recv_fds(link, HEADER.size, count)
    if not header:
        return None
    while len(header) < HEADER.size:
        header += _more(link.fileno(), HEADER.size - len(header))
    (size,) = HEADER.unpack(header)
    return _receive_rest(link.fileno(), b"", size), list(descriptors)
