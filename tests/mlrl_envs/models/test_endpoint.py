import gzip
import itertools
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import pytest

from mlrl_envs.errors import EndpointError, InfraError, InvalidArgumentError, UnknownNameError
from mlrl_envs.models import API_KEY_VARIABLE, ChatReply, Endpoint, as_endpoint

HELLO = [{"role": "user", "content": "hello"}]


def at(server, **options):
    return Endpoint(server.url, "m", **{"max_retries": 0, **options})


def test_chat_returns_the_words_of_the_model(chat_server):
    assert at(chat_server).chat(HELLO) == "hello!"


def test_only_options_that_were_set_are_sent(chat_server):
    at(chat_server).chat(HELLO)
    at(chat_server, top_p=0.9, seed=3, temperature=0.5, max_tokens=5).chat(HELLO)
    first, second = chat_server.requests
    assert first == {"model": "m", "messages": HELLO, "max_tokens": 512, "temperature": 0.0}
    assert second == {**first, "top_p": 0.9, "seed": 3, "temperature": 0.5, "max_tokens": 5}


def test_many_answers_come_in_the_order_of_the_questions(chat_server):
    batch = [[{"role": "user", "content": str(number)}] for number in range(40)]
    assert at(chat_server).chat_many(batch) == [f"{number}!" for number in range(40)]


def test_no_question_needs_no_server():
    assert Endpoint("http://127.0.0.1:9/v1", "m").chat_many([]) == []


def test_each_answer_may_have_a_seed_of_its_own(chat_server):
    at(chat_server, seed=5).complete([HELLO] * 3, seeds=[7, 8, 9])
    at(chat_server, seed=5).complete([HELLO] * 2)
    assert sorted(request["seed"] for request in chat_server.requests) == [5, 5, 7, 8, 9]


def test_questions_are_asked_side_by_side_and_no_more_than_allowed(chat_server):
    lock, running, most = threading.Lock(), [], []

    def answer(request):
        with lock:
            running.append(1)
            most.append(len(running))
        threading.Event().wait(0.05)
        with lock:
            running.pop()
        return chat_server.echo(request)

    chat_server.answer = answer
    at(chat_server, max_concurrency=3).chat_many([HELLO] * 9)
    assert max(most) == 3


def test_replies_carry_counts_and_why_they_ended(chat_server):
    def cut(request):
        status, body = chat_server.echo(request)
        body["choices"][0]["finish_reason"] = "length"
        return status, body

    assert at(chat_server).complete([HELLO]) == [ChatReply("hello!", "stop", 7, 2)]
    chat_server.answer = cut
    assert at(chat_server).complete([HELLO]) == [ChatReply("hello!", "length", 7, 2)]


def test_a_server_that_counts_nothing_and_writes_nothing_is_understood(chat_server):
    message = {"role": "assistant", "content": None}
    chat_server.answer = lambda _: (200, {"choices": [{"message": message, "finish_reason": None}]})
    assert at(chat_server).complete([HELLO]) == [ChatReply("")]


def test_lone_surrogates_are_sent_as_replacement_characters(chat_server):
    assert at(chat_server).chat([{"role": "user", "content": "\ud800"}]) == "\ufffd!"


@pytest.mark.parametrize(
    ("status", "body", "cause", "fix"),
    [
        (400, {"detail": "pinned to x"}, "status 400: pinned to x", "model's name"),
        (401, {"error": {"message": "no"}}, "status 401: no", API_KEY_VARIABLE),
        (404, {"error": "what?"}, "status 404", "/v1"),
        (429, {"error": {"message": "slow\ndown"}}, "slow down", "max_concurrency"),
        (500, {}, "status 500", "log"),
        (200, {"choices": []}, "no choices", "/v1"),
        (200, b"<html>", "unreadable answer", "/v1"),
        (200, b'"words"', "no choices", "/v1"),
        (200, {"choices": {"a": 1}}, "no choices", "/v1"),
        (200, {"choices": 5}, "no choices", "/v1"),
        (200, {"choices": [{"message": "hi"}]}, "no choices", "/v1"),
        (200, {"choices": [{"message": {"content": 5}}]}, "no text in its answer: 5", "text"),
        (200, {"choices": [{"message": {"content": [{"type": "image"}]}}]}, "no text", "text"),
        (200, {"choices": [{"message": {"content": [{"type": []}]}}]}, "no text", "text"),
        (200, b"[" * 100_000, "unreadable answer", "/v1"),
    ],
)
def test_each_failure_names_server_model_cause_and_fix_in_one_line(
    chat_server, status, body, cause, fix
):
    chat_server.answer = lambda _: (status, body)
    with pytest.raises(EndpointError) as caught:
        at(chat_server).chat(HELLO)
    message = str(caught.value)
    assert "\n" not in message
    for part in (at(chat_server).base_url, "'m'", cause, fix):
        assert part in message


def test_a_dead_port_is_infrastructure(dead_url):
    endpoint = Endpoint(dead_url, "m", max_retries=0)
    with pytest.raises(InfraError, match=r"cannot connect.*; start the server"):
        endpoint.chat_many([HELLO] * 3)


def test_an_address_that_the_library_refuses_is_named():
    with pytest.raises(EndpointError, match=r"cannot connect: .*v1\.a.*; correct base_url"):
        Endpoint("http://[v1.a]/v1", "m").chat(HELLO)


def test_a_silent_server_is_not_waited_for(chat_server):
    silence = threading.Event()

    def answer(request):
        silence.wait(5)
        return chat_server.echo(request)

    chat_server.answer = answer
    with pytest.raises(EndpointError, match=r"no answer within 0\.1 s; raise timeout_seconds"):
        at(chat_server, timeout_seconds=0.1).chat(HELLO)
    silence.set()


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_server_that_sends_a_byte_now_and_then_is_not_waited_for(chat_server, begin):
    enough = threading.Event()

    def drip():
        yield begin
        yield from (b" " for _ in range(500) if not enough.wait(0.01))

    chat_server.answer = lambda _: (200, drip())
    with pytest.raises(EndpointError, match=r"no answer within 0\.2 s; raise timeout_seconds"):
        at(chat_server, timeout_seconds=0.2).chat(HELLO)
    enough.set()


def test_a_response_without_end_is_refused(chat_server, monkeypatch):
    monkeypatch.setattr("mlrl_envs.models.limited.MOST_BYTES", 1 << 20)
    pieces = itertools.chain([b"HTTP/1.1 200 OK\r\n\r\n"], itertools.repeat(b" " * 65536))
    chat_server.answer = lambda _: (200, pieces)
    with pytest.raises(EndpointError, match="an answer of more than 1 MiB"):
        at(chat_server).chat(HELLO)


def test_a_compressed_response_is_read(chat_server):
    body = gzip.compress(json.dumps(chat_server.echo({"messages": HELLO})[1]).encode())
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\r\n"
    chat_server.answer = lambda _: (200, iter([head, body]))
    assert at(chat_server).chat(HELLO) == "hello!"


def test_a_failure_that_passes_is_tried_again(chat_server):
    chat_server.answer = lambda request: (
        chat_server.echo(request) if len(chat_server.requests) > 1 else (503, {})
    )
    assert at(chat_server, max_retries=1).chat(HELLO) == "hello!"


def test_one_failure_of_many_returns_none(chat_server):
    chat_server.answer = lambda request: (
        (400, {}) if request["messages"][-1]["content"] == "bad" else chat_server.echo(request)
    )
    bad = [{"role": "user", "content": "bad"}]
    with pytest.raises(EndpointError):
        at(chat_server).chat_many([HELLO, bad, HELLO])


def test_the_key_comes_from_the_environment_unless_it_is_given(chat_server, monkeypatch):
    monkeypatch.delenv(API_KEY_VARIABLE, raising=False)
    at(chat_server).chat(HELLO)
    monkeypatch.setenv(API_KEY_VARIABLE, "from-environment")
    at(chat_server).chat(HELLO)
    at(chat_server, api_key="given").chat(HELLO)
    assert chat_server.keys == ["Bearer none", "Bearer from-environment", "Bearer given"]


def test_the_key_is_in_neither_repr_nor_message(chat_server):
    endpoint = at(chat_server, api_key="sk-secret")
    chat_server.answer = lambda _: (401, {"error": {"message": "bad key sk-secret"}})
    with pytest.raises(EndpointError, match=r"bad key \[key\]") as caught:
        endpoint.chat(HELLO)
    assert "sk-secret" not in str(caught.value) + repr(endpoint)


def test_copies_keep_the_key_and_plain_values_do_not():
    endpoint = Endpoint("http://x/v1", "m", api_key="sk-secret")
    for copied in (replace(endpoint, seed=1), pickle.loads(pickle.dumps(endpoint))):
        assert copied.api_key == "sk-secret"
    assert "sk-secret" not in str(asdict(endpoint))
    assert as_endpoint(asdict(endpoint)) == endpoint


def test_an_endpoint_survives_pickling_and_use_in_threads(chat_server):
    endpoint = pickle.loads(pickle.dumps(at(chat_server)))
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(endpoint.chat, [HELLO] * 8)) == {"hello!"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "127.0.0.1:8000"}, "base_url must be like"),
        ({"base_url": 3}, "base_url must be like"),
        ({"base_url": "ftp://x/v1"}, "base_url must be like"),
        ({"base_url": "http://[::1/v1"}, "base_url must be like"),
        ({"base_url": "http://x:99999/v1"}, "base_url must be like"),
        ({"base_url": "http://x\0/v1"}, "base_url must be like"),
        ({"base_url": "http://me:secret@x/v1"}, "no password"),
        ({"model": ""}, "model must name"),
        ({"api_key": 3}, "api_key must be a str"),
        ({"timeout_seconds": 0}, "timeout_seconds must be a number above 0"),
        ({"timeout_seconds": float("inf")}, "timeout_seconds must be a number above 0"),
        ({"max_retries": -1}, "max_retries must be an int of at least 0"),
        ({"max_tokens": True}, "max_tokens must be an int of at least 1"),
        ({"temperature": -0.1}, "temperature must be a number at least 0"),
        ({"temperature": "hot"}, "temperature must be a number at least 0"),
        ({"temperature": 10**400}, "temperature must be a number at least 0"),
        ({"temperature": float("nan")}, "temperature must be a number at least 0"),
        ({"top_p": 1.5}, "top_p must be at most 1"),
        ({"seed": -1}, "seed must be an int of at least 0"),
        ({"max_concurrency": 0}, "max_concurrency must be an int of at least 1"),
    ],
)
def test_values_outside_their_range_are_named(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Endpoint(**{"base_url": "http://x/v1", "model": "m", **options})


def test_a_mapping_makes_an_endpoint():
    made = as_endpoint({"base_url": "https://x/v1", "model": "m", "max_tokens": 9})
    assert made == Endpoint("https://x/v1", "m", max_tokens=9)
    assert as_endpoint(made) is made


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ({"base_url": "http://x/v1"}, InvalidArgumentError, "needs model"),
        ({"base_ulr": "x"}, UnknownNameError, "did you mean 'base_url'"),
        ({"api_key": "k"}, InvalidArgumentError, API_KEY_VARIABLE),
        ("http://x/v1", InvalidArgumentError, "base_url and model"),
    ],
)
def test_a_bad_mapping_is_refused(value, error, message):
    with pytest.raises(error, match=message):
        as_endpoint(value)


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_a_server_of_this_machine_is_not_reached_through_a_proxy(
    chat_server, monkeypatch, variable
):
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert at(chat_server).chat(HELLO) == "hello!"
