"""HTTP client of the `openai` library with limits of the time and the size of one response.

The library's own time limit is that of each read, which a server that sends a byte now and then
never exceeds. This module imports the library; it is imported at the first request.
"""

import importlib
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitTimeoutError
from contextlib import closing
from threading import Thread
from typing import Any

import openai

__all__ = ["InvalidURL", "LimitedClient"]

MOST_BYTES = 1 << 28
"""Most bytes of a response, uncompressed; the largest are those with token ids."""
REWRITTEN = ("content-encoding", "content-length", "transfer-encoding")
_http: Any = importlib.import_module(openai.DefaultHttpxClient.mro()[1].__module__)
InvalidURL: type[Exception] = _http.InvalidURL
"""Error of a URL that is not valid."""


class LimitedClient(openai.DefaultHttpxClient):
    """A client whose responses must be complete within a time limit.

    Args:
        seconds: Time limit of one request, its redirects included.
        use_proxies: Whether to use the proxies that environment variables name.
    """

    def __init__(self, seconds: float, *, use_proxies: bool = True) -> None:
        super().__init__(mounts={} if use_proxies else dict.fromkeys(("http://", "https://")))
        self._seconds = seconds

    def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:  # noqa: ANN401
        """Send a request and return its response, which has been read.

        Raises:
            ReadTimeout: The library's error, if the response is not complete in time.
            OpenAIError: If it has more than `MOST_BYTES` bytes.
        """
        if stream:
            return super().send(request, stream=True, **options)
        deadline = time.monotonic() + self._seconds
        received: Future[Any] = Future()

        def receive() -> None:
            try:
                response = super(LimitedClient, self).send(request, stream=True, **options)
                received.set_result(_read(response, deadline))
            except BaseException as error:  # noqa: BLE001  raised again by `result`
                received.set_exception(error)

        # A read of headers cannot be interrupted; it fails when the client is closed.
        Thread(target=receive, name="request", daemon=True).start()
        try:
            return received.result(self._seconds)
        except WaitTimeoutError:
            raise _http.ReadTimeout("the time limit was exceeded", request=request) from None


def _read(response: Any, deadline: float) -> Any:  # noqa: ANN401 - of httpx, or of httpx2
    """Return a response with the content of a streamed one."""
    content = bytearray()
    with closing(response):
        for piece in response.iter_bytes():
            content += piece
            if len(content) > MOST_BYTES:
                raise openai.OpenAIError(f"an answer of more than {MOST_BYTES >> 20} MiB")
            if time.monotonic() > deadline:
                raise _http.ReadTimeout("the time limit was exceeded", request=response.request)
    headers = [(k, v) for k, v in response.headers.multi_items() if k.lower() not in REWRITTEN]
    return type(response)(
        response.status_code, headers=headers, content=bytes(content), request=response.request
    )
