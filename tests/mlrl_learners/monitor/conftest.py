import json
import threading
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest


class Run:
    """A run directory that tests write, line by line, as a trainer does."""

    def __init__(self, path):
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def append(self, name, *rows):
        with (self.path / name).open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    def rewrite(self, name, rows):
        """Replace a file, as a resumed run does."""
        beside = self.path / f".{name}.beside"
        beside.write_text("".join(json.dumps(row) + "\n" for row in rows))
        beside.replace(self.path / name)

    def train(self, iteration, reward=0.5, **metrics):
        row = {"iteration": iteration, "seconds": 2.0, "train/return": reward, **metrics}
        self.append("metrics.jsonl", row)

    def play(self, iteration, *rollouts):
        self.append("episodes.jsonl", *({"iteration": iteration, **row} for row in rollouts))


def a_step(reward, samples=(0, 0), *, solved=False, child=None):
    aux, main = samples
    checks = [{"name": "public tests", "passed": solved, "status": "seen", "details": ["why"]}]
    return {
        "samples": {"aux": aux, "main": main},
        "rewards": {"aux": reward, "main": reward},
        "components": {"aux": {"tests": reward}, "main": {"tests": reward}},
        "diagnostics": {"aux": {"checks": checks}, "main": {"checks": checks}},
        "solved": solved,
        "terminated": child is None,
        "truncated": False,
        "child": child,
    }


def a_node(*steps, turn=0, texts=("one", "two"), reads="the task"):
    answers = [{"text": text, "tokens": 3, "finish_reason": "stop"} for text in texts]
    return {
        "turn": turn,
        "observations": {"aux": f"aux: {reads}", "main": f"main: {reads}"},
        "completions": {"aux": answers, "main": answers},
        "steps": list(steps),
    }


def a_rollout(reward=0.5, *, task="T/0", text="one", solved=False, node=None):
    node = node or a_node(a_step(reward, solved=solved), texts=(text,))
    return {"rollout": 0, "task_id": task, "seed": 7, "agents": ["aux", "main"], "node": node}


def a_tree():
    """Two joint actions; the first goes on to two more, the second of which solves the task."""
    below = a_node(
        a_step(0.0, (0, 0)), a_step(0.8, (1, 1), solved=True),
        turn=1, texts=("worse", "better"), reads="feedback",
    )  # fmt: skip
    return a_rollout(node=a_node(a_step(0.2, child=below), a_step(0.5, (1, 1))))


@pytest.fixture(scope="session")
def rows():
    """Makers of stored episodes."""
    return SimpleNamespace(rollout=a_rollout, tree=a_tree, node=a_node, step=a_step)


@pytest.fixture
def run(tmp_path):
    """A run directory below a folder of runs, with nothing in it yet."""
    return Run(tmp_path / "runs" / "first")


@pytest.fixture
def other_run(run):
    return Run(run.path.parent / "second")


@pytest.fixture
def served(run):
    """The address of a monitor that shows the folder of runs."""
    uvicorn = pytest.importorskip("uvicorn")
    from mlrl_learners.monitor.server import make_app, server_config

    server = uvicorn.Server(server_config(make_app(run.path.parent)))
    server.config.port = 0
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture
def ask():
    """Returns status, headers and text of an answer."""

    def asked(address):
        try:
            with urllib.request.urlopen(address) as answer:  # noqa: S310 - a server of ours
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    return asked


@pytest.fixture
def window(served, open_page):
    """Opens pages that are closed before the server is: the order of these fixtures."""
    return open_page
