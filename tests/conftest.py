import json
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failure. Every run draws other examples; `--hypothesis-profile thorough`
# tries more of them at once.
settings.register_profile("mlrl", deadline=None, max_examples=30)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile("mlrl")


def pytest_configure(config):
    """Give tests that run side by side folders of their own: some look for what was left behind."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tempfile.mkdtemp(prefix="tests-")
        Path(folder).chmod(0o1777)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


class Server(ThreadingHTTPServer):
    """Answers as told, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests = []
        self.keys = []
        self.answer = self.echo

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request, client_address):
        pass  # a client that stopped waiting

    def echo(self, request):
        words = request["messages"][-1]["content"]
        message = {"role": "assistant", "content": f"{words}!"}
        usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(request)
        self.server.keys.append(self.headers["authorization"])
        status, body = self.server.answer(request)
        if isinstance(body, Iterator):  # pieces of the response, headers included
            for piece in body:
                self.wfile.write(piece)
            return
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *args):
        pass


@pytest.fixture
def chat_server():
    """A server on this machine that speaks just enough of OpenAI's protocol."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def dead_url():
    """The address of a server that is not there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return f"http://127.0.0.1:{port}/v1"


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium, driven by Playwright; skips where either is missing.

    It is one a module, because Playwright keeps an event loop running as long as it lives.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    program = os.environ.get("MLRL_CHROMIUM") or next(found, None)
    if program is None:
        pytest.skip("no Chromium: install Debian's chromium, or name one in MLRL_CHROMIUM")
    playwright.expect.set_options(timeout=30_000)
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """Return a function that opens a window; whatever it complains about fails the test.

    Its arguments are those of Playwright's `Browser.new_context`, such as `viewport` and
    `color_scheme`. A request to anywhere but this machine is a complaint, too.
    """
    contexts, complaints = [], []

    def open_window(**options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
        page.on("request", lambda request: _is_local(request.url) or complaints.append(request.url))
        return page

    yield open_window
    for context in contexts:
        context.close()
    assert complaints == []


def _is_local(url):
    return url.startswith(("http://127.0.0.1:", "http://localhost:", "file:", "data:", "blob:"))
