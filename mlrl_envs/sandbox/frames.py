"""Length-prefixed frames over stream sockets, with file descriptors beside the first byte."""

import socket
import struct

__all__ = ["FrameError", "receive", "receive_with_descriptors", "send", "send_with_descriptors"]

HEADER = struct.Struct("!I")
CHUNK = 1 << 16


class FrameError(Exception):
    """The peer hung up in mid-frame or announced a frame beyond the cap."""


def send(link: socket.socket, payload: bytes) -> None:
    """Send one frame."""
    if len(payload) < CHUNK:
        link.sendall(HEADER.pack(len(payload)) + payload)
    else:
        link.sendall(HEADER.pack(len(payload)))
        link.sendall(payload)


def receive(link: socket.socket, cap: int) -> bytes | None:
    """Return the next frame, or None if the peer hung up between frames.

    Raises:
        FrameError: If the frame is longer than `cap`, or breaks off.
    """
    first = link.recv(CHUNK)
    if not first:
        return None
    while len(first) < HEADER.size:
        more = link.recv(CHUNK)
        if not more:
            raise FrameError("the peer hung up inside a header")
        first += more
    (size,) = HEADER.unpack_from(first)
    if size > cap:
        raise FrameError(f"a frame of {size} bytes is over the cap of {cap}")
    if len(first) == HEADER.size + size:
        return first[HEADER.size :]
    return _receive_rest(link, first[HEADER.size :], size)


def _receive_rest(link: socket.socket, begun: bytes, size: int) -> bytes:
    if len(begun) > size:
        raise FrameError("bytes beyond the end of a frame")
    buffer = bytearray(begun)
    while len(buffer) < size:
        more = link.recv(min(size - len(buffer), 1 << 20))
        if not more:
            raise FrameError("the peer hung up inside a frame")
        buffer += more
    return bytes(buffer)


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
        more = link.recv(HEADER.size - len(header))
        if not more:
            raise FrameError("the peer hung up inside a header")
        header += more
    (size,) = HEADER.unpack(header)
    return _receive_rest(link, b"", size), list(descriptors)
