"""HTTP application of a policy server: routes, access control, limits and error responses."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlrl_envs.errors import MlrlError
from mlrl_envs.serve import Tokens
from mlrl_learners.monitor.hosts import is_local_name
from mlrl_learners.serving.answers import Job
from mlrl_learners.serving.batcher import Batcher
from mlrl_learners.serving.errors import RequestError, error_body, one_line
from mlrl_learners.serving.models import newest
from mlrl_learners.serving.prompts import encode
from mlrl_learners.serving.replies import Reply
from mlrl_learners.serving.requests import SampleRequest, read_chat, read_completion
from mlrl_learners.serving.settings import PolicyServerConfig
from mlrl_learners.serving.streams import stream
from mlrl_learners.serving.values import Fields

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["make_app"]

MOST_BODY_BYTES = 8 * 2**20
RETRY_SECONDS = 1
DISCONNECT_POLL_SECONDS = 0.5


def make_app(batcher: Batcher, config: PolicyServerConfig) -> "Starlette":
    """Return the application that serves the models of a batcher."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    paths = _Paths(batcher, config)
    return Starlette(
        routes=[
            Route("/health", paths.guarded(paths.health, is_open=True)),
            Route("/v1/models", paths.guarded(paths.models)),
            Route("/v1/chat/completions", paths.guarded(paths.chat), methods=["POST"]),
            Route("/v1/completions", paths.guarded(paths.completions), methods=["POST"]),
            Route("/v1/reload", paths.guarded(paths.reload), methods=["POST"]),
        ],
        exception_handlers={404: _no_path, 405: _no_path, Exception: _failed},
        lifespan=paths.lifespan,
    )


class _Paths:
    """Request handlers of the routes."""

    def __init__(self, batcher: Batcher, config: PolicyServerConfig) -> None:
        self._batcher, self._config = batcher, config
        self._tokens = Tokens(config.token_file)
        policies = batcher.models.policies
        # Tokenizers are not thread-safe: each thread has its own copies.
        self._encoders = {name: deepcopy(each.tokenizer) for name, each in policies.items()}
        self._decoders = {name: deepcopy(each.tokenizer) for name, each in policies.items()}
        self._encoding = ThreadPoolExecutor(1, thread_name_prefix="encoding")

    @contextlib.asynccontextmanager
    async def lifespan(self, _app: object) -> AsyncIterator[None]:
        """Load new checkpoints while the server runs, if `watch` is set."""
        watching = asyncio.ensure_future(self._watch()) if self._config.watch else None
        try:
            yield
        finally:
            if watching is not None:
                watching.cancel()
            self._encoding.shutdown(wait=False, cancel_futures=True)

    def guarded(
        self,
        answer: "Callable[[Request], Awaitable[Response]]",
        *,
        is_open: bool = False,
    ) -> "Callable[[Request], Awaitable[Response]]":
        """Return an endpoint that checks access first, and answers a `RequestError`."""

        async def endpoint(request: "Request") -> "Response":
            try:
                self._check_access(request.headers, is_open=is_open)
                return await answer(request)
            except RequestError as error:
                return _error(error)

        return endpoint

    async def health(self, _request: "Request") -> "Response":
        """Report whether the server can answer requests."""
        from starlette.responses import JSONResponse

        status = 200 if self._batcher.is_alive else 503
        answer = {
            "status": "ok" if status == 200 else "failed",
            "version": self._batcher.models.version,
            "in_flight": self._batcher.in_flight,
        }
        return JSONResponse(answer, status)

    async def models(self, _request: "Request") -> "Response":
        """List the served models and the version of their weights."""
        from starlette.responses import JSONResponse

        models = self._batcher.models
        found = [
            {"id": name, "object": "model", "created": 0, "owned_by": "mlrl"}
            | {"version": models.version}
            for name in models.names
        ]
        return JSONResponse({"object": "list", "data": found})

    async def chat(self, request: "Request") -> "Response":
        """Answer a chat request."""
        return await self._sample(request, read_chat(await _json_body(request)))

    async def completions(self, request: "Request") -> "Response":
        """Answer a completion request."""
        return await self._sample(request, read_completion(await _json_body(request)))

    async def reload(self, request: "Request") -> "Response":
        """Load other weights."""
        from starlette.responses import JSONResponse

        fields = Fields(await _json_body(request))
        path = self._allowed(fields.text("path"))
        fields.refuse_rest({}, ())
        try:
            version = await self._batcher.reload(path)
        except MlrlError as error:
            raise RequestError(str(error), param="path") from error
        return JSONResponse({"version": version, "path": str(path)})

    async def _sample(self, request: "Request", asked: SampleRequest) -> "Response":
        from starlette.responses import JSONResponse, StreamingResponse

        job, decoder = await self._job(asked)
        self._check_room(asked)
        if asked.stream:
            lines = stream(self._batcher, job, decoder)
            return StreamingResponse(lines, media_type="text/event-stream")
        sampling = self._batcher.submit(job)
        try:
            while not (await asyncio.wait([sampling], timeout=DISCONNECT_POLL_SECONDS))[0]:
                if await request.is_disconnected():
                    raise RequestError("the client has gone", status=499)
            return JSONResponse(Reply(job, decoder).whole(sampling.result()))
        finally:
            sampling.cancel()

    async def _job(self, asked: SampleRequest) -> tuple[Job, Any]:
        """Return the job of a request, and a tokenizer to decode its tokens.

        Raises:
            RequestError: If the model does not exist, a prompt is invalid for it, or too many
                answers are in flight.
        """
        models = self._batcher.models
        policy = models.policy(asked.model)
        if policy is None:
            message = f"no model {asked.model[:80]!r}; there are: {', '.join(models.names)}"
            raise RequestError(message, status=404, param="model")
        self._check_room(asked)
        name = next(name for name, each in models.policies.items() if each is policy)
        loop = asyncio.get_running_loop()
        prompts = await loop.run_in_executor(
            self._encoding, encode, policy, self._encoders[name], asked
        )
        return Job(asked, policy, prompts), self._decoders[name]

    def _check_room(self, asked: SampleRequest) -> None:
        """Raise an error if the answers would exceed `max_in_flight`."""
        most = self._config.max_in_flight
        if asked.num_answers > most:
            raise RequestError(f"a request has at most {most} answers", param="n")
        if self._batcher.in_flight + asked.num_answers > most:
            raise RequestError(f"{most} answers are in flight; try again", status=429)

    def _check_access(self, headers: Mapping[str, str], *, is_open: bool) -> None:
        """Raise an error unless the host name and the token of a request are accepted."""
        if self._config.token_file is None and not is_local_name(headers.get("host", "")):
            raise RequestError("no name of this server; use its address", status=421)
        if not is_open and self._tokens.owner_of(headers.get("authorization", "")) is None:
            raise RequestError("send a token of this server: Authorization: Bearer", status=401)

    def _allowed(self, text: str) -> Path:
        """Return the path that a reload names; raise an error if it is outside `reload_from`."""
        root = self._config.reload_from
        if root is None:
            raise RequestError("start the server with --reload-from FOLDER", status=403)
        try:
            path = Path(root, text).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # a NUL character, a loop of links
            raise RequestError(f"no path: {error}", param="path") from error
        if not path.is_relative_to(Path(root).resolve()):
            raise RequestError("path is outside --reload-from", status=403, param="path")
        return path

    async def _watch(self) -> None:
        """Load each new checkpoint of the run; one that cannot be read is not tried again."""
        tried = self._batcher.models.source
        while True:
            await asyncio.sleep(self._config.watch_seconds)
            try:
                found = newest(Path(self._config.model))
                if found is not None and str(found) != tried:
                    tried = str(found)
                    version = await self._batcher.reload(found)
                    print(f"mlrl: serving version {version}", file=sys.stderr, flush=True)
            except Exception as error:  # noqa: BLE001  the next checkpoint may be valid
                print(f"mlrl: {one_line(error)}", file=sys.stderr, flush=True)


async def _json_body(request: "Request") -> object:
    """Return the parsed JSON body of a request.

    Raises:
        RequestError: If the content type or the body is not JSON, or the body is too large.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        # Web pages of other origins cannot send this content type without a CORS preflight.
        raise RequestError("send JSON, with Content-Type: application/json", status=415)
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BODY_BYTES:
            raise RequestError(f"the body has more than {MOST_BODY_BYTES} bytes", status=413)
    try:
        return json.loads(bytes(body), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body is no JSON: {error}") from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _error(error: RequestError) -> "Response":
    from starlette.responses import JSONResponse

    headers = {"retry-after": str(RETRY_SECONDS)} if error.status == 429 else {}
    if error.status in (413, 415):
        headers["connection"] = "close"  # the rest of the body is not read
    return JSONResponse(error_body(error), error.status, headers)


def _no_path(request: "Request", error: Exception) -> "Response":
    status = getattr(error, "status_code", 404)
    return _error(RequestError(f"no {request.method} {request.url.path} here", status=status))


def _failed(_request: "Request", error: Exception) -> "Response":
    return _error(RequestError(f"the server failed: {type(error).__name__}", status=500))
