"""Answers with token ids: what is asked for, what is read, and what is refused in one line."""

import pytest

from mlrl_envs.errors import EndpointError
from mlrl_envs.models import Endpoint, TokenReply, TokenRequest

NAMED = {"tokens": ["token_id:5", "token_id:6"], "token_logprobs": [-0.5, -0.25]}


def choice(**changes):
    whole = {"index": 0, "text": "ab", "finish_reason": "stop", "token_ids": [5, 6]}
    whole |= {"logprobs": {"tokens": ["a", "b"], "token_logprobs": [-0.5, -0.25]}}
    return {name: value for name, value in (whole | changes).items() if value is not None}


def answer(*choices, **fields):
    return 200, {"id": "1", "object": "text_completion", "choices": list(choices), **fields}


def ask(server, *requests, **options):
    endpoint = Endpoint(server.url, "m", **{"max_retries": 0, "temperature": 0.7, **options})
    return endpoint.sample_tokens(requests or [TokenRequest([1, 2, 3])])


def test_a_prompt_is_sent_as_token_ids_and_asks_for_all_its_answers(chat_server):
    chat_server.answer = lambda request: answer(choice(), choice())
    (found,) = ask(chat_server, TokenRequest([1, 2], 2, seed=7, stop_token_ids=[0], stop=["END"]))
    (request,) = chat_server.requests
    assert (request["prompt"], request["n"], request["seed"]) == ([1, 2], 2, 7)
    assert (request["temperature"], request["top_p"], request["top_k"]) == (0.7, 1.0, -1)
    assert (request["stop_token_ids"], request["stop"]) == ([0], ["END"])
    assert request["return_token_ids"]
    assert found == [TokenReply((5, 6), (-0.5, -0.25), "ab")] * 2


@pytest.mark.parametrize(
    ("fields", "version"),
    [
        ({"metadata": {"weight_version": "12"}}, 12.0),
        ({"weight_version": 3}, 3.0),
        ({"metadata": {"weight_version": "default"}}, None),
        ({}, None),
    ],
)
def test_the_version_of_the_weights_is_read_where_it_is_a_number(fields, version, chat_server):
    chat_server.answer = lambda request: answer(choice(), **fields)
    ((reply,),) = ask(chat_server)
    assert reply.weight_version == version


def test_token_ids_may_be_the_names_of_the_tokens(chat_server):
    chat_server.answer = lambda request: answer(choice(token_ids=None, logprobs=NAMED))
    ((reply,),) = ask(chat_server)
    assert reply.token_ids == (5, 6)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (answer(choice(token_ids=None)), "no token ids in its answer; serve .* return_token_ids"),
        (answer(choice(logprobs=None)), "0 log-probabilities for 2 tokens"),
        (answer(choice(logprobs={"token_logprobs": [-1.0]})), "1 log-probabilities for 2 tokens"),
        (answer(choice(logprobs={"token_logprobs": [0.5, -1.0]})), "2 log-probabilities for 2"),
        (answer(choice(prompt_token_ids=[1, 2])), "it read 2 prompt tokens instead of the 3 sent"),
        (answer(choice(token_ids=[1e999, 6])), "no token ids in its answer"),
        (answer(choice(logprobs={"token_logprobs": [-(10**400), -1.0]})), "2 log-probabilities"),
        (answer(choice(logprobs={"token_logprobs": 5})), "0 log-probabilities for 2 tokens"),
        ((200, {"choices": {"a": 1}}), "0 choices in its answer, for n 1"),
        (answer(), "0 choices in its answer, for n 1"),
        ((500, {"error": {"message": "out of memory"}}), "status 500: out of memory"),
        ((200, b"<html>"), "base_url"),
    ],
)
def test_an_answer_that_cannot_be_trained_on_is_an_error_of_one_line(reply, message, chat_server):
    chat_server.answer = lambda request: reply
    (error,) = ask(chat_server)
    assert isinstance(error, EndpointError)
    with pytest.raises(EndpointError, match=message) as caught:
        raise error
    assert "\n" not in str(caught.value)


def test_one_failing_prompt_leaves_the_answers_to_the_others(chat_server):
    chat_server.answer = lambda request: answer(choice()) if request["prompt"] == [1] else (500, {})
    good, bad = ask(chat_server, TokenRequest([1]), TokenRequest([2]))
    assert good[0].token_ids == (5, 6)
    assert isinstance(bad, EndpointError)
