"""HTTP server of the monitor, read-only and bound to the loopback interface by default.

To prevent DNS rebinding, requests are answered only if their Host header is an address, `localhost`
or a name of this machine. Runs are looked up by name and never by path. The content security
policy allows only the monitor's own script and no other origin.
"""

import hashlib
import socket
from collections.abc import Callable, Collection
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from mlrl_envs.hosts import is_loopback
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.monitor.hosts import family, is_local_name, own_names, url
from mlrl_learners.monitor.library import Library
from mlrl_learners.monitor.opened_views import TEXTS
from mlrl_learners.monitor.page_request import NotThereError, NotYetError, PageRequest
from mlrl_learners.monitor.pages.layout import message
from mlrl_learners.monitor.views import PAGES, charts_stamp

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["make_app", "serve", "server_config"]

_STATIC = {
    "tokens.css": ("mlrl_learners.report", "tokens.css", "text/css"),
    "style.css": ("mlrl_learners.report", "style.css", "text/css"),
    "monitor.css": ("mlrl_learners.monitor", "static/monitor.css", "text/css"),
    "charts.js": ("mlrl_learners.monitor", "static/charts.js", "text/javascript"),
    "chart_tools.js": ("mlrl_learners.monitor", "static/chart_tools.js", "text/javascript"),
    "monitor.js": ("mlrl_learners.monitor", "static/monitor.js", "text/javascript"),
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
_ACCEPTED, _MISDIRECTED = 202, 421
_AGAIN_SECONDS = 2


def make_app(root: Path, names: Collection[str] = ()) -> "ASGIApp":
    """Return the application that shows the runs below a folder.

    Args:
        root: The folder.
        names: Names by which requests may call this machine, beside those that it knows itself.

    Raises:
        ConfigError: If starlette is missing.
        RunDirError: If there is no such folder.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError as error:
        raise _missing(error) from error
    if root.is_file():
        raise RunDirError(f"{str(root)!r} is a file: mlrl report reads files of episodes")
    if not root.is_dir():
        raise RunDirError(f"no folder of runs at {str(root)!r}")
    library = Library(root)
    routes = [Route(path, _endpoint(library, path)) for path in PAGES]
    routes += [Route(path, _text(library, path)) for path in TEXTS]
    routes.append(Route("/static/{name}", _static))
    handlers = {404: _no_such_page, Exception: _failed}
    # Outside the application, because a middleware of it does not see answers to exceptions.
    return _Guard(Starlette(routes=routes, exception_handlers=handlers), names)


def server_config(app: "ASGIApp") -> "uvicorn.Config":
    """Return the configuration of the server of an application."""
    import uvicorn

    from mlrl_learners.monitor.connections import BoundedProtocol

    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        lifespan="off",
    )


def serve(
    root: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    public: bool = False,
    names: Collection[str] = (),
    announce: Callable[[str], None] = print,
) -> None:
    """Show the runs below a folder until interrupted.

    Args:
        root: A folder of runs, or a run.
        host: Address to bind.
        port: Port to bind; 0 selects a free one.
        public: Allow addresses that other machines can reach.
        names: Further DNS names of this machine.
        announce: Called with the URL when the server listens.

    Raises:
        ConfigError: If other machines can reach `host` and `public` is false, or a package is
            missing.
        RunDirError: If there is no such folder.
        OSError: If the port is taken.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise _missing(error) from error
    if not (public or is_loopback(host)):
        raise ConfigError(
            f"everyone who can reach {host!r} could read every transcript; "
            "add --public to allow this, or use an SSH tunnel"
        )
    app = make_app(root, own_names(host, names, public=public))
    with _listen(host, port) as listener:
        announce(url(host, listener.getsockname()[1], names))
        uvicorn.Server(server_config(app)).run(sockets=[listener])


def _endpoint(library: Library, path: str) -> "Callable[[Request], Response]":
    from starlette.responses import HTMLResponse, Response

    page = PAGES[path]

    def answer(request: "Request") -> "Response":
        page_request = PageRequest(dict(request.query_params), request.query_params.getlist("run"))
        try:
            stamp = charts_stamp(library, page_request) if path == "/charts" else None
            body = None if stamp is not None else page(library, page_request)
            tag = _etag(stamp or body or "")
            headers = {"etag": tag}
            if path == "/report":  # a self-contained document
                headers["content-disposition"] = 'attachment; filename="report.html"'
            if request.headers.get("if-none-match") == tag:
                return Response(status_code=304, headers=headers)
            return HTMLResponse(body or page(library, page_request), headers=headers)
        except NotThereError as error:
            return HTMLResponse(message("Not found", str(error)), status_code=404)
        except NotYetError as error:
            return _not_yet(error)
        except IndexError:  # a resumed run has rewritten the file meanwhile
            said = "The run was rewound while this page was made. Reload the page."
            return HTMLResponse(message("The run was rewound", said), status_code=409)

    return answer


def _text(library: Library, path: str) -> "Callable[[Request], Response]":
    from starlette.responses import HTMLResponse, Response

    write, media_type = TEXTS[path]

    def answer(request: "Request") -> "Response":
        try:
            text = write(library, PageRequest(dict(request.query_params)))
        except NotThereError as error:
            return HTMLResponse(message("Not found", str(error)), status_code=404)
        except NotYetError as error:
            return _not_yet(error)
        return Response(text.encode("utf-8", "replace"), media_type=media_type)

    return answer


def _static(request: "Request") -> "Response":
    from starlette.responses import Response

    found = _STATIC.get(request.path_params["name"])
    if found is None:
        return _no_such_page(request, NotThereError())
    package, name, media_type = found
    body = resources.files(package).joinpath(name).read_text("utf-8")
    headers = {"etag": _etag(body)}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


def _no_such_page(_request: "Request", _error: Exception) -> "Response":
    from starlette.responses import HTMLResponse

    return HTMLResponse(message("Not found", "There is no such page."), status_code=404)


def _not_yet(error: NotYetError) -> "Response":
    """Return a page that asks again by itself."""
    from starlette.responses import HTMLResponse

    headers = {"refresh": str(_AGAIN_SECONDS)}
    body = message("Just a moment", str(error), " The page opens by itself.")
    return HTMLResponse(body, _ACCEPTED, headers)


def _failed(_request: "Request", error: Exception) -> "Response":
    from starlette.responses import HTMLResponse

    said = f"The page failed with {type(error).__name__}; the monitor's terminal shows the details."
    return HTMLResponse(message("This page failed", said), status_code=500)


class _Guard:
    """Middleware that rejects foreign Host headers and adds the security headers."""

    def __init__(self, app: "ASGIApp", names: Collection[str]) -> None:
        self.app = app
        self.names = names

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            return
        from starlette.datastructures import Headers, MutableHeaders
        from starlette.responses import PlainTextResponse

        async def send_guarded(sent: "Message") -> None:
            if sent["type"] == "http.response.start":
                MutableHeaders(scope=sent).update(_HEADERS)
            await send(sent)

        if not is_local_name(Headers(scope=scope).get("host", ""), self.names):
            said = "No name of this server: use its address, or start it with --name NAME.\n"
            await PlainTextResponse(said, _MISDIRECTED)(scope, receive, send_guarded)
            return
        await self.app(scope, receive, send_guarded)


def _etag(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f'"{digest[:32]}"'


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=family(host))
    except OSError as error:
        raise OSError(f"cannot listen on {host} port {port}: {error.strerror}") from error


def _missing(error: ImportError) -> ConfigError:
    return ConfigError(f"{error.name} is not installed: pip install 'mlrl[monitor]'")
