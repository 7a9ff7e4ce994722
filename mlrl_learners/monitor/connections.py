"""HTTP connections of which unfinished ones cannot keep others out.

uvicorn waits without end for the rest of a request, so that some hundred half-open connections use
up its file descriptors.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["MOST_WAITING", "BoundedProtocol"]

MOST_WAITING = 128
"""Number of connections that may wait for a request; the oldest one is closed for a new one."""
REQUEST_SECONDS = 20.0
"""Time in which a whole request must arrive."""
RESPONSE_SECONDS = 600.0
"""Time in which an answer must be made and read."""


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 connection with limits on waiting.

    Bytes that arrive do not extend the time, so that a request cannot be sent slowly without end.
    """

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock, and close the oldest waiting connection if there are too many."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self.since = self.loop.time()
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._check_time)
        peers = [each for each in self.connections if isinstance(each, BoundedProtocol)]
        # Aborted connections stay among the peers until the event loop goes on.
        waiting = [each for each in peers if each.is_waiting and not each.transport.is_closing()]
        if len(waiting) > MOST_WAITING:
            min(waiting, key=lambda each: each.since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Restart the clock if a request is complete."""
        was_waiting = self.is_waiting
        super().data_received(data)
        if was_waiting and not self.is_waiting:
            self.since = self.loop.time()

    def on_response_complete(self) -> None:
        """Restart the clock for the next request."""
        self.since = self.loop.time()
        super().on_response_complete()

    def _check_time(self) -> None:
        limit = REQUEST_SECONDS if self.is_waiting else RESPONSE_SECONDS
        left = self.since + limit - self.loop.time()
        if left <= 0:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(min(left, REQUEST_SECONDS), self._check_time)
