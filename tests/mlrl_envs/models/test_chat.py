"""Answers of chat models: text, token counts and tool calls, whatever a server sends."""

import json

import pytest

from mlrl_envs.models import ChatReply, Endpoint
from mlrl_envs.tools.calls import ToolCall, read_message

HELLO = [{"role": "user", "content": "hello"}]
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {}}}]


def at(server, **options):
    return Endpoint(server.url, "m", **{"max_retries": 0, **options})


@pytest.mark.parametrize(
    ("parts", "text"), [([], ""), (["hel", "lo"], "hello"), (["a", "", "\n b"], "a\n b")]
)
def test_text_parts_of_an_answer_are_joined(chat_server, parts, text):
    content = [{"type": "text", "text": part} for part in parts]
    chat_server.answer = lambda _: (200, {"choices": [{"message": {"content": content}}]})
    assert at(chat_server).chat(HELLO) == text


@pytest.mark.parametrize(
    "count", [b"NaN", b"1e999", b'"abc"', b"true", b"[1]", b"-1", b"9" * 400, b"null"]
)
def test_counts_that_are_no_numbers_of_tokens_count_as_missing(chat_server, count):
    chat_server.answer = lambda _: (
        200,
        b'{"choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": %b}}' % count,
    )
    assert at(chat_server).complete([HELLO]) == [ChatReply("hi")]


def _calling(*calls, content=None):
    """Return an answer of a server with tool calls, each a name and arguments."""
    listed = [
        {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}
        for name, arguments in calls
    ]
    message = {"role": "assistant", "content": content, "tool_calls": listed}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return lambda _: (200, {"choices": [choice]})


def test_tools_are_sent_only_if_there_are_some(chat_server):
    endpoint = at(chat_server)
    endpoint.complete([HELLO], tools=TOOLS)
    endpoint.complete([HELLO])
    with_tools, without = chat_server.requests
    assert with_tools["tools"] == TOOLS
    assert "tools" not in without


def test_tool_calls_are_text_after_the_content(chat_server):
    chat_server.answer = _calling(("search", '{"query": "x"}'), ("list_files", ""), content="So:")
    (reply,) = at(chat_server).complete([HELLO], tools=TOOLS)
    assert reply.finish_reason == "stop"
    assert reply.text == (
        'So:\n<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>'
        '\n<tool_call>{"name": "list_files", "arguments": {}}</tool_call>'
    )


@pytest.mark.parametrize(
    "arguments", ['{"query": ', "x", "[1]", '{}, "name": "python"', "[" * 9_999, [1], 3]
)
def test_malformed_arguments_are_kept_and_make_a_malformed_call(chat_server, arguments):
    chat_server.answer = _calling(("search", arguments))
    (reply,) = at(chat_server).complete([HELLO], tools=TOOLS)
    (call,) = read_message(reply.text).calls
    assert "not a JSON object" in call.error
    assert json.dumps(str(arguments)) in reply.text


@pytest.mark.parametrize(
    "calls", [{}, "x", [None], [{}], [{"function": None}], [{"function": {"name": None}}], [7]]
)
def test_strange_tool_calls_raise_nothing(chat_server, calls):
    message = {"role": "assistant", "content": "hi", "tool_calls": calls}
    chat_server.answer = lambda _: (200, {"choices": [{"index": 0, "message": message}]})
    (reply,) = at(chat_server).complete([HELLO])
    assert reply.text.startswith("hi")


def test_arguments_that_a_server_sends_as_an_object_are_read(chat_server):
    chat_server.answer = _calling(("search", {"query": "x"}))
    (reply,) = at(chat_server).complete([HELLO], tools=TOOLS)
    assert read_message(reply.text).calls == (ToolCall("search", {"query": "x"}),)
