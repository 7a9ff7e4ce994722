"""Every page of the project, with content, at an address of its own.

The pages are built and served once a session. The browser is one a module (tests/conftest.py).
"""

import json
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import redirect_stdout
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LANDING = """
import runpy, sys, types
sys.modules["reference"] = types.SimpleNamespace(write_pages=lambda folder: None)
globals().update(runpy.run_path({conf!r}))
html_static_path = [{static!r}]
html_favicon = {static!r} + "/favicon.svg"
"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *args):
        pass


def _output(*command):
    """Run a command of `mlrl`, and return what it prints."""
    from mlrl_learners.cli import main

    with redirect_stdout(StringIO()) as printed:
        assert main([str(word) for word in command]) == 0
    return printed.getvalue()


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Two runs with trees of episodes, a folder of `bench run`, and one of cross-play."""
    from benchmarks.perf.monitor_run import write_run

    folder = tmp_path_factory.mktemp("pages") / "runs"
    for name, seed in (("magrpo-seed-1", 1), ("magrpo-seed-2", 2)):
        write_run(folder / name, episodes=240, seed=seed)
    evaluated = json.loads(_output("evaluate", "mlrl/humaneval-v1", "--actor", "reference",
                                   "--split", "sample", "--tasks", "2", "--json"))  # fmt: skip
    with (folder / "magrpo-seed-1/evaluations.jsonl").open("w") as file:
        file.writelines(json.dumps({"iteration": n, **evaluated}) + "\n" for n in (0, 12))
    _evaluated_run(folder / "workflow", "mlrl/math-v2", "--env.workflow", "critic")
    _evaluated_run(folder / "worlds", "mlrl/housebuild-v0", "--env.source", "procedural")
    _output("bench", "run", "--suite", "smoke", "--actor", "random", "--run-dir", folder / "smoke",
            "--only", "mlrl/story-v1", "mlrl/math-v2")  # fmt: skip
    _output("bench", "crossplay", "mlrl/nim-v0", "--actors", "script:random", "script:perfect",
            "--tasks", "4", "--run-dir", folder / "nim")  # fmt: skip
    return folder


def _evaluated_run(folder, env_id, *options):
    """Write a folder that holds one evaluation of the reference."""
    found = json.loads(_output("evaluate", env_id, "--actor", "reference", "--tasks", "2", "--json",
                               *options))  # fmt: skip
    folder.mkdir()
    (folder / "evaluations.jsonl").write_text(json.dumps({"iteration": 0, **found}) + "\n")


@pytest.fixture(scope="session")
def monitor(runs):
    """Address of a monitor of the runs."""
    uvicorn = pytest.importorskip("uvicorn")
    from mlrl_learners.monitor.server import make_app, server_config

    server = uvicorn.Server(server_config(make_app(runs)))
    server.config.port = 0
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def _build_landing(source):
    """Build the first page of the documentation, without the generated reference."""
    docs = ROOT / "docs"
    source.mkdir()
    (source / "conf.py").write_text(
        LANDING.format(conf=str(docs / "conf.py"), static=str(docs / "_static"))
    )
    shutil.copy(docs / "index.md", source)
    shutil.copytree(docs / "images", source / "images")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", source, source / "html"]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="session")
def files(runs, tmp_path_factory):
    """Address of a server of the pages that are files: report, leaderboard, first page."""
    for package in ("scipy", "jsonschema_rs", "jinja2", "furo"):
        pytest.importorskip(package)
    from mlrl_learners.bench.leaderboard import build, write
    from mlrl_learners.report import write_report

    folder = tmp_path_factory.mktemp("files")
    write_report(runs / "magrpo-seed-1", folder / "report.html")
    write(build(ROOT / "benchmarks/results"), folder / "leaderboard")
    _build_landing(folder / "docs")
    handler = partial(QuietHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def addresses(runs, monitor, files):
    """Page -> address."""
    shared = _shared_episode(runs / "magrpo-seed-1", runs / "magrpo-seed-2")
    episode = f"run=magrpo-seed-1&key={shared}"
    for name in ("magrpo-seed-1", "magrpo-seed-2"):
        _wait_for(f"{monitor}/episode?run={name}&key={shared}")
    return {
        "curves": f"{monitor}/?chosen=1&run=magrpo-seed-1&run=magrpo-seed-2",
        "run": f"{monitor}/run?run=magrpo-seed-1",
        "episodes": f"{monitor}/episodes?run=magrpo-seed-1",
        "reader": f"{monitor}/episode?{episode}",
        "compare": f"{monitor}/compare?{episode}&other=magrpo-seed-2",
        "bench": f"{monitor}/episodes?run=smoke",
        "bench overview": f"{monitor}/run?run=smoke",
        "crossplay": f"{monitor}/run?run=nim",
        "workflow": f"{monitor}/episode?run=workflow&source=evaluation&key=0-0",
        "blocks": f"{monitor}/episode?run=worlds&source=evaluation&key=0-0",
        "evaluation": f"{monitor}/episodes?run=magrpo-seed-1&source=evaluation",
        "leaderboard": f"{files}/leaderboard/index.html",
        "transcripts": f"{files}/leaderboard/transcripts/coding--concatenation.html",
        "report": f"{files}/report.html",
        "docs": f"{files}/docs/html/index.html",
    }


def _wait_for(address):
    """Ask until a page is there: the file of episodes is read in the background."""
    while urllib.request.urlopen(address).status != 200:  # noqa: S310 - a server of ours
        time.sleep(0.2)


def _shared_episode(run, other):
    """Return the key of the last episode of a run whose task was played in the other, too."""

    def tasks(folder):
        lines = (folder / "episodes.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line)["task_id"] for line in lines]

    there = set(tasks(other))
    return max(number for number, task in enumerate(tasks(run)) if task in there)
