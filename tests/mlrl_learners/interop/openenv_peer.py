"""Plays our OpenEnv server with OpenEnv's own client, and prints what it saw as JSON."""

import json
import socket
import sys
import threading
import urllib.request

import uvicorn
from openenv import GenericEnvClient

from mlrl_learners.interop.openenv import openenv_app


def serve(app):
    """Return the address of the application, served by a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    threading.Thread(target=server.run, args=([listener],), daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def seen(result):
    return {"observation": result.observation, "reward": result.reward, "done": result.done}


def play(url, reset, actions):
    """Return the results of a reset and of some actions, and the state at the end."""
    with GenericEnvClient(base_url=url).sync() as client:
        found = [seen(client.reset(**reset))]
        for action in actions:
            try:
                found.append(seen(client.step(action)))
            except RuntimeError as error:
                found.append({"error": str(error)})
        return found, client.state()["step_count"]


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310  our own server
        return json.loads(answer.read())


def main():
    env_id, options, reset, actions = map(json.loads, sys.argv[1:])
    url = serve(openenv_app(env_id, max_sessions=2, **options))
    found, count = play(url, reset, actions)
    again, _ = play(url, reset, actions)
    print(json.dumps({
        "found": found, "again": again == found, "count": count,
        "health": fetch(f"{url}/health"), "action": fetch(f"{url}/schema")["action"]["required"],
    }))  # fmt: skip


main()
