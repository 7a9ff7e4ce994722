import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from mlrl_envs.errors import InvalidArgumentError
from mlrl_learners.cli import main
from mlrl_learners.serving import PolicyServerConfig

CHAT = "/chat/completions"
USER = [{"role": "user", "content": "a fox"}]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CHAT, {"messages": []}, "messages"),
        (CHAT, {"messages": [{"role": "user"}]}, "messages"),
        (CHAT, {"messages": [{"role": "tool", "content": "x"}]}, "messages"),
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
        (CHAT, {"messages": USER, "temperature": -1}, "temperature"),
        (CHAT, {"messages": USER, "temperature": 1e-9}, "temperature"),
        (CHAT, {"messages": USER, "temperature": "hot"}, "temperature"),
        (CHAT, {"messages": USER, "temperature": 10**400}, "temperature"),
        (CHAT, {"messages": USER, "top_p": 0}, "top_p"),
        (CHAT, {"messages": USER, "n": 0}, "n"),
        (CHAT, {"messages": USER, "n": True}, "n"),
        (CHAT, {"messages": USER, "max_tokens": 2**40}, "max_tokens"),
        (CHAT, {"messages": USER, "max_tokens": 5000}, "messages"),
        (CHAT, {"messages": USER, "logprobs": 3}, "logprobs"),
        (CHAT, {"messages": USER, "top_logprobs": 3}, "top_logprobs"),
        (CHAT, {"messages": USER, "stop": ""}, "stop"),
        (CHAT, {"messages": USER, "stop": [""]}, "stop"),
        (CHAT, {"messages": USER, "stop": 5}, "stop"),
        (CHAT, {"messages": USER, "seed": 1.5}, "seed"),
        (CHAT, {"messages": USER, "tools": [{}]}, "tools"),
        (CHAT, {"messages": USER, "presence_penalty": 0.5}, "presence_penalty"),
        (CHAT, {"messages": USER, "no_such": 1}, "no_such"),
        (CHAT, {"messages": USER, "model": None}, "model"),
        ("/completions", {}, "prompt"),
        ("/completions", {"prompt": ""}, "prompt"),
        ("/completions", {"prompt": [[]]}, "prompt"),
        ("/completions", {"prompt": [-1]}, "prompt"),
        ("/completions", {"prompt": [258]}, "prompt"),
        ("/completions", {"prompt": [1] * 4096}, "prompt"),
        ("/completions", {"prompt": "x", "echo": True}, "echo"),
    ],
)
def test_bad_requests_are_told_in_one_line(server, ask, path, body, param):
    found = ask(server.url + path, {"model": "tiny-random", **body})
    error = json.loads(found.text)["error"]
    assert found.status == 400
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert error["message"]
    assert "\n" not in error["message"]


def test_neutral_and_ignored_fields_are_taken(post):
    post(CHAT, messages=USER, max_tokens=1, tools=[], presence_penalty=0, user="me", suffix=None)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"[" * 100_000, {}, 400),
        (b'{"model": NaN}', {}, 400),
        (b"[]", {}, 400),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b" " * (8 * 2**20 + 1), {}, 413),
        (b"{}", {"host": "evil.example"}, 421),
    ],
)
def test_bad_bodies_and_hosts_are_refused(server, ask, body, headers, status):
    found = ask(server.url + CHAT, body, headers)
    assert found.status == status
    assert "\n" not in json.loads(found.text)["error"]["message"]


def test_unknown_models_and_paths_are_named(server, ask):
    found = ask(server.url + CHAT, {"model": "gpt", "messages": USER})
    assert found.status == 404
    assert "there are: tiny-random" in found.text
    assert ask(server.url + "/nothing", {}).status == 404
    assert ask(server.url + CHAT, None).status == 405


def test_models_and_health_are_listed(server, ask):
    (model,) = json.loads(ask(server.url + "/models", None).text)["data"]
    assert (model["id"], model["version"]) == ("tiny-random", 0)
    health = ask(server.url.replace("/v1", "/health"), None)
    assert (health.status, json.loads(health.text)["status"]) == (200, "ok")


def test_too_many_answers_in_flight_are_refused_for_a_while(open_server, ask):
    server = open_server(max_in_flight=4, batch_milliseconds=300)
    body = {"model": "tiny-random", "messages": USER, "max_tokens": 5, "n": 2}
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: ask(server.url + CHAT, body), range(6)))
    refused = [each for each in found if each.status == 429]
    assert {each.status for each in found} == {200, 429}
    assert len(refused) == 4
    assert refused[0].headers["retry-after"] == "1"
    assert json.loads(refused[0].text)["error"]["type"] == "rate_limit_error"
    assert ask(server.url + CHAT, {**body, "n": 5}).status == 400
    assert server.batcher.in_flight == 0


def test_a_token_is_needed_where_one_is_set(open_server, ask, tmp_path):
    path = tmp_path / "token"
    path.write_text("0123456789abcdef\n")
    server = open_server(token_file=path)
    body = {"model": "tiny-random", "messages": USER, "max_tokens": 1}
    for token, status in (("0123456789abcdef", 200), ("0123456789abcdeX", 401), ("", 401)):
        headers = {"authorization": f"Bearer {token}"}
        assert ask(server.url + CHAT, body, headers).status == status
    assert ask(server.url + "/models", None).status == 401
    assert ask(server.url.replace("/v1", "/health"), None).status == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"public": True}, "needs --token-file"),
        ({"host": "0.0.0.0"}, "add --public"),  # noqa: S104  refused
        ({"tls_cert": "a"}, "both --tls-cert and --tls-key"),
        ({"max_in_flight": 0}, "max_in_flight must be an int from 1"),
        ({"port": -1}, "port must be"),
        ({"watch_seconds": 0.0}, "watch_seconds must be above 0"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        PolicyServerConfig("tiny-random", **options)


def test_mistakes_on_the_command_line_are_one_line(capsys, tmp_path):
    for words, message in (
        (["no-such-model-anywhere"], "no-such-model-anywhere"),
        (["tiny-random", "--host", "0.0.0.0"], "add --public"),  # noqa: S104  refused
        (["tiny-random", "--token-file", str(tmp_path / "no")], "cannot be read"),
        (["tiny-random", "--watch"], "--watch needs a run"),
        (["tiny-random", "--dtype", "int3"], "dtype must be one of"),
    ):
        assert main(["serve", "policy", *words, "--port", "0"]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1


@pytest.mark.slow
def test_sigterm_lets_requests_finish_and_ends_the_process(ask):
    words = ["serve", "policy", "tiny-random", "--port", "0", "--batch-milliseconds", "1500"]
    with subprocess.Popen(
        [sys.executable, "-m", "mlrl_learners", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        url = process.stdout.readline().strip()
        body = {"model": "tiny-random", "messages": USER, "max_tokens": 50}
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(ask, url + CHAT, body)
            while json.loads(ask(url.replace("/v1", "/health"), None).text)["in_flight"] == 0:
                pass
            process.terminate()
            assert waiting.result().status == 200
        assert process.wait(30) == 0
