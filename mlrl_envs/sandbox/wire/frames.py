"""Length-prefixed frames over stream sockets, optionally with file descriptors."""

import os
import socket
import struct

__all__ = ["FrameError", "receive", "receive_with_descriptors", "send", "send_with_descriptors"]

HEADER = struct.Struct("!I")
CHUNK = 1 << 16
BIG_CHUNK = 1 << 20


class FrameError(Exception):
    """A frame is incomplete or longer than allowed."""


def send(link: int, payload: bytes) -> None:
    """Send one frame over the descriptor of a socket."""
    rest = memoryview(HEADER.pack(len(payload)) + payload)
    while rest:
        rest = rest[os.write(link, rest) :]


def receive(link: int, cap: int) -> bytes | None:
    """Return the next frame, or None if the peer closed the connection between frames.

    The peer must wait for an answer before it sends the next frame.

    Raises:
        FrameError: If the frame is longer than `cap` bytes, is incomplete, or more bytes follow.
    """
    first = os.read(link, CHUNK)
    if not first:
        return None
    while len(first) < HEADER.size:
        first += _more(link, CHUNK)
    (size,) = HEADER.unpack_from(first)
    if size > cap:
        raise FrameError(f"a frame of {size} bytes exceeds the limit of {cap}")
    if len(first) == HEADER.size + size:
        return first[HEADER.size :]
    return _receive_rest(link, first[HEADER.size :], size)


def _receive_rest(link: int, begun: bytes, size: int) -> bytes:
    if len(begun) > size:
        raise FrameError("bytes after the end of a frame")
    buffer = bytearray(begun)
    while len(buffer) < size:
        buffer += _more(link, min(size - len(buffer), BIG_CHUNK))
    return bytes(buffer)


def _more(link: int, size: int) -> bytes:
    more = os.read(link, size)
    if not more:
        raise FrameError("the peer closed the connection inside a frame")
    return more


def send_with_descriptors(link: socket.socket, payload: bytes, descriptors: list[int]) -> None:
    """Send one frame, and file descriptors with its header."""
    socket.send_fds(link, [HEADER.pack(len(payload))], descriptors)
    if payload:
        link.sendall(payload)


def receive_with_descriptors(link: socket.socket, count: int) -> tuple[bytes, list[int]] | None:
    """Return the next frame and its descriptors, or None if the peer closed the connection.

    Args:
        link: Socket to a trusted peer.
        count: Largest number of descriptors to accept.

    Raises:
        FrameError: If the frame is incomplete.
    """
    header, descriptors, _flags, _address = socket.recv_fds(link, HEADER.size, count)
    if not header:
        return None
    while len(header) < HEADER.size:
        header += _more(link.fileno(), HEADER.size - len(header))
    (size,) = HEADER.unpack(header)
    return _receive_rest(link.fileno(), b"", size), list(descriptors)
