"""Without a network, data sets of the hub are read from their cache, or are missing at once."""

import os
import socket
import threading
import urllib.request
from urllib.parse import urlsplit

__all__ = ["look_for_hub"]

OFFLINE = "TRANSFORMERS_OFFLINE"  # HF_HUB_OFFLINE asks mlrl not even to try
HUB = "https://huggingface.co"


def look_for_hub() -> threading.Thread:
    """Resolve the hub's address in a thread, and put its client offline if there is none.

    The client would retry for half a minute. It reads the variable when it is imported, which
    comes after the look-up of a name that does not exist.
    """
    thread = threading.Thread(target=_look, daemon=True)
    thread.start()
    return thread


def _look() -> None:
    if urllib.request.getproxies():  # the proxy resolves it
        return
    try:
        socket.getaddrinfo(urlsplit(os.environ.get("HF_ENDPOINT") or HUB).hostname, None)
    except OSError:
        os.environ[OFFLINE] = "1"
