"""Names of this machine: Host headers that are answered, and the address that is announced."""

import re
import socket
from collections.abc import Iterable

from mlrl_envs.hosts import is_address

__all__ = ["family", "is_local_name", "own_names", "url"]

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:@/\\\s]+))(?::[0-9]{1,5})?", re.IGNORECASE)
_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound


def is_local_name(header: str, names: Iterable[str] = ()) -> bool:
    """Return whether a Host header is an address, `localhost`, or a name of this machine.

    Args:
        header: Value of the header, with or without a port.
        names: Further names that are answered, in lower case.
    """
    found = _HOST.fullmatch(header)
    if found is None:
        return False
    if found[1] is not None:
        return ":" in found[1] and is_address(found[1])
    name = found[2].lower()
    own = socket.gethostname().lower()
    return is_address(name) or name in {"localhost", own, own.partition(".")[0], *names}


def own_names(host: str, names: Iterable[str], *, public: bool) -> frozenset[str]:
    """Return the names, beside those of `is_local_name`, by which the server may be called.

    Args:
        host: Address or name on which it listens.
        names: Names that the user gave.
        public: Whether other machines may reach it; they use its full DNS name.
    """
    found = {*names, *([] if host in _EVERYWHERE else [host])}
    if public:
        found.add(socket.getfqdn())
    return frozenset(name.lower() for name in found)


def url(host: str, port: int, names: Iterable[str] = ()) -> str:
    """Return an address at which the server can be opened.

    Args:
        host: Address or name on which it listens; for all addresses of the machine, its name is
            returned.
        port: Its port.
        names: Names that the user gave; the first one is preferred.
    """
    shown = next(iter(names), socket.gethostname() if host in _EVERYWHERE else host)
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"


def family(host: str) -> socket.AddressFamily:
    """Return the address family of a host on which to listen."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET
