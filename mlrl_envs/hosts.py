"""Names and addresses of this machine."""

import ipaddress

__all__ = ["is_address", "is_loopback"]


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host, without asking a name server."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    """Return whether a host is an IPv4 or IPv6 address, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
