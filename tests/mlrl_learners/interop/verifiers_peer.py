"""Runs the evaluation command of verifiers on our environments, and prints its episodes as JSON.

The model is a stand-in that answers with the number of messages it has read.
"""

import contextlib
import io
import json
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from verifiers.v1.cli.eval.main import main as evaluate

MODULE = """from mlrl_learners.interop.verifiers import MlrlEnv, MlrlHarness, MlrlTaskset
__all__ = ["MlrlEnv", "MlrlHarness", "MlrlTaskset"]
"""


ASKED = []


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        ASKED.append([line["content"] for line in request["messages"]])
        content = f"A fox waits in the snow, {len(request['messages'])}."
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = json.dumps({
            "id": "1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [choice], "usage": usage,
        }).encode()  # fmt: skip
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def run(folder, words):
    """Return the episodes of an evaluation."""
    (folder / "mlrl_taskset.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        client = ["--client.base-url", url, "--client.api-key-var", "NO_SUCH_KEY"]
        evaluate(
            [
                "mlrl_taskset",
                *words,
                *client,
                "-m",
                "m",
                "-r",
                "1",
                "--no-push",
                "--output-dir",
                str(folder),
            ]
        )
        server.shutdown()
    (path,) = folder.glob("*/traces.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(io.StringIO()):
    episodes = run(Path(place), sys.argv[1:])
found = [
    {
        "ok": each["ok"],
        "errors": [error["message"] for error in each["errors"]],
        "rewards": {
            trace["info"]["mlrl_agent"]: trace["rewards"]["mlrl_reward"]["score"]
            for trace in each["traces"]
        },
    }
    for each in episodes
]
print(json.dumps({"episodes": found, "asked": ASKED}))
