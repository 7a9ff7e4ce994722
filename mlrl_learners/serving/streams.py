"""Server-sent events of answers that are being sampled.

Text is held back while its last character is incomplete, or while it may be the start of a stop
text; if the answer may call tools, to its end.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from mlrl_learners.policies import StopTexts
from mlrl_learners.serving.answers import Answer, Job, ShownToken
from mlrl_learners.serving.batcher import Batcher
from mlrl_learners.serving.errors import RequestError, error_body
from mlrl_learners.serving.replies import Reply

__all__ = ["GrowingText", "stream"]

CONTEXT = 8  # preceding tokens that are decoded with new ones, to keep spaces between words
DONE = b"data: [DONE]\n\n"


class GrowingText:
    """Text of an answer whose tokens arrive one at a time.

    Args:
        tokenizer: A `transformers` tokenizer.
        stops: Texts that end the answer.

    Attributes:
        sent: Text that `add` and `end` have returned.
    """

    def __init__(self, tokenizer: Any, stops: Sequence[str]) -> None:  # noqa: ANN401  untyped
        self._tokenizer, self._stops = tokenizer, StopTexts(tokenizer, stops)
        self._held = max((len(text) - 1 for text in stops), default=0)
        self._read: list[int] = []
        self._new: list[int] = []
        self._text = ""
        self.sent = ""

    def add(self, token_id: int) -> str:
        """Add a token, and return the new text that later tokens cannot change."""
        self._new.append(token_id)
        before = self._decode(self._read)
        both = self._decode(self._read + self._new)
        if both.endswith("\ufffd"):  # an incomplete character
            return ""
        self._text += both[len(before) :]
        self._read = (self._read + self._new)[-CONTEXT:]
        self._new = []
        cut = self._stops.cut(self._text)
        certain = cut if len(cut) < len(self._text) else cut[: max(0, len(cut) - self._held)]
        return self._send(certain)

    def end(self, text: str) -> str:
        """Return the part of the complete text that has not been returned yet."""
        return self._send(text)

    def _send(self, text: str) -> str:
        fresh = text[len(self.sent) :]
        self.sent += fresh
        return fresh

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text


def stream(batcher: Batcher, job: Job, tokenizer: Any) -> AsyncIterator[bytes]:  # noqa: ANN401
    """Submit a job, and return the server-sent events of its response."""
    loop = asyncio.get_running_loop()
    shown: asyncio.Queue[ShownToken | None] = asyncio.Queue()

    def show(token: ShownToken) -> None:
        loop.call_soon_threadsafe(shown.put_nowait, token)

    job.show = show
    sampling = batcher.submit(job)
    sampling.add_done_callback(lambda _: shown.put_nowait(None))
    return _events(job, tokenizer, shown, sampling)


async def _events(
    job: Job,
    tokenizer: Any,  # noqa: ANN401
    shown: "asyncio.Queue[ShownToken | None]",
    sampling: "asyncio.Future[list[Answer]]",
) -> AsyncIterator[bytes]:
    reply, asked = Reply(job, tokenizer), job.request
    texts = [GrowingText(tokenizer, asked.sampling.stop) for _ in range(asked.num_answers)]
    try:
        is_open = False
        while (token := await shown.get()) is not None:
            for event in [] if is_open else reply.opening():
                yield _line(event)
            is_open = True
            text = texts[token.number]
            start = len(text.sent)
            fresh = "" if asked.tools else text.add(token.token_id)
            yield _line(reply.part(token.number, fresh, [token], start))
        for event in _last_events(reply, texts, sampling.result()):
            yield _line(event)
    except Exception as error:  # noqa: BLE001  the HTTP status has been sent
        failed = RequestError(f"sampling failed: {type(error).__name__}: {error}", status=500)
        yield _line(error_body(failed))
    finally:
        sampling.cancel()
    yield DONE


def _last_events(
    reply: Reply, texts: Sequence[GrowingText], answers: Sequence[Answer]
) -> list[dict[str, Any]]:
    """Return the last event of each answer, and the token counts if requested."""
    ends = [
        reply.end(number, text.end(answer.text), answer)
        for number, (text, answer) in enumerate(zip(texts, answers, strict=True))
    ]
    return [*ends, reply.usage_event(answers)] if reply.job.request.include_usage else ends


def _line(event: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(event, allow_nan=False)}\n\n".encode()
