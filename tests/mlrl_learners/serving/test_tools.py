"""Requests with tools: what the model reads, and calls in replies as OpenAI's protocol has them."""

import json

import pytest

import mlrl_envs
from mlrl_envs.models import Endpoint
from mlrl_learners.actors import EndpointActor
from mlrl_learners.policies import tiny_model
from mlrl_learners.serving import batcher
from mlrl_learners.serving.answers import Answer
from mlrl_learners.serving.tool_calls import calls_of

TOOLS = mlrl_envs.tools_of("mlrl/tools-v1")
USER = [{"role": "user", "content": "list the files"}]
CALL = '<tool_call>\n{"name": "list_files", "arguments": {}}\n</tool_call>'
ASKED = {"type": "function", "function": {"name": "list_files", "arguments": "{}"}}
# Written like the template of Qwen2.5.
TEMPLATE = (
    "{% if tools %}<|im_start|>system\n<tools>{% for tool in tools %}\n{{ tool | tojson }}"
    '{% endfor %}\n</tools>\nWrite <tool_call>{"name": <name>, "arguments": <object>}'
    "</tool_call><|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>"
    "{{ 'user\n<tool_response>' if m.role == 'tool' else m.role }}\n"
    "{{ m.content }}{% for call in m.tool_calls or [] %}{{ '\n' if m.content else '' }}"
    '<tool_call>\n{"name": "{{ call.function.name }}", "arguments": '
    "{{ call.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    """The tokenizer of the served model."""
    made = tiny_model()[1]
    made.chat_template = TEMPLATE
    return made


@pytest.fixture(scope="module")
def caller(open_server, tokenizer, tmp_path_factory):
    """A server of a model whose chat template has tools."""
    folder = tmp_path_factory.mktemp("caller")
    tiny_model()[0].save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return open_server(str(folder))


@pytest.fixture
def chat(caller, ask):
    """Return a function that posts a chat request: status and body of the answer."""
    name = json.loads(ask(f"{caller.url}/models", None).text)["data"][0]["id"]

    def post(**body):
        answer = ask(f"{caller.url}/chat/completions", {"model": name, "max_tokens": 2, **body})
        return answer.status, json.loads(answer.text)

    return post


@pytest.fixture
def saying(monkeypatch):
    """Return a function that lets the model write a text."""

    def say(text, reason="stop"):
        def sample(jobs, max_rows):
            return [[Answer(text, (1,), (0.0,), reason)] * job.request.num_answers for job in jobs]

        monkeypatch.setattr(batcher, "sample_batch", sample)

    return say


def ids(tokenizer, messages, **options):
    return tokenizer.apply_chat_template(messages, add_generation_prompt=True, **options)[
        "input_ids"
    ]


def test_the_model_reads_the_template_applied_to_messages_tools_and_results(chat, tokenizer):
    called = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", **ASKED}]}
    messages = [*USER, called, {"role": "tool", "tool_call_id": "1", "content": "a.txt"}]
    status, body = chat(messages=messages, tools=TOOLS, return_token_ids=True)
    assert status == 200, body
    parsed = {**ASKED, "function": {"name": "list_files", "arguments": {}}}
    expected = [USER[0], {**called, "content": "", "tool_calls": [parsed]}, messages[2]]
    assert body["prompt_token_ids"] == ids(tokenizer, expected, tools=TOOLS)


def test_tool_choice_none_leaves_tools_out(chat, tokenizer, saying):
    saying(CALL)
    options = {"messages": USER, "tools": TOOLS, "tool_choice": "none", "return_token_ids": True}
    body = chat(**options)[1]
    assert body["prompt_token_ids"] == ids(tokenizer, USER)
    assert body["choices"][0]["message"] == {"role": "assistant", "content": CALL}


def test_calls_leave_the_text_of_an_answer(chat, saying):
    saying(f"I look.\n{CALL}")
    choice = chat(messages=USER, tools=TOOLS)[1]["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "I look."
    (call,) = choice["message"]["tool_calls"]
    assert {**ASKED, "id": call["id"]} == call
    saying(CALL, "length")
    choice = chat(messages=USER, tools=TOOLS)[1]["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", None)


def test_an_answer_without_calls_stays_as_it_is(chat, saying):
    saying(" Done. ")
    choice = chat(messages=USER, tools=TOOLS)[1]["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": " Done. "}
    assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{}</tool_call>",
        '<tool_call>{"name": 3}</tool_call>',
        '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "f"</tool_call>',
        '<tool_call>{"name": "f"}',
    ],
)
def test_what_is_no_call_stays_in_the_text(text):
    assert calls_of(text) == (text, [])


def test_the_openai_library_and_our_actor_read_calls_whole_and_in_a_stream(caller, saying):
    openai = pytest.importorskip("openai")
    saying(f"So: {CALL}{CALL}")
    with openai.OpenAI(base_url=caller.url, api_key="none", max_retries=0) as client:
        name = client.models.list().data[0].id
        options = {"model": name, "messages": USER, "tools": TOOLS}
        message = client.chat.completions.create(**options).choices[0].message
        assert [call.function.name for call in message.tool_calls] == ["list_files"] * 2
        parts = client.chat.completions.create(**options, stream=True)
        choices = [part.choices[0] for part in parts]
    deltas = [choice.delta for choice in choices]
    assert "".join(delta.content or "" for delta in deltas) == "So:"
    calls = [call for delta in deltas for call in delta.tool_calls or []]
    assert [(call.index, call.function.arguments) for call in calls] == [(0, "{}"), (1, "{}")]
    assert choices[-1].finish_reason == "tool_calls"
    actor = EndpointActor(Endpoint(caller.url, name, max_tokens=4), tools="mlrl/tools-v1")
    text = actor.act([{"solver": "hi"}])[0]["solver"][0].text
    assert text.startswith("So:\n<tool_call>")
    assert text.count('"list_files"') == 2


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "a<|im_end|>"}}]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools"),
        ({"tools": [{"type": "code", "function": {"name": "a"}}]}, "tools"),
        ({"tools": [3]}, "tools"),
        ({"tools": {}}, "tools"),
        ({"tools": TOOLS, "tool_choice": "required"}, "tool_choice"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]}, "messages"),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [{"function": {"name": "f", "arguments": "["}}],
                    }
                ]
            },
            "messages",
        ),
    ],
)
def test_wrong_tools_are_one_line(chat, body, param):
    status, answer = chat(**{"messages": USER, **body})
    error = answer["error"]
    assert (status, error["param"]) == (400, param)
    assert "\n" not in error["message"]


def test_a_template_without_tools_is_one_line(server, ask):
    body = {"model": "tiny-random", "messages": USER, "tools": TOOLS}
    answer = ask(f"{server.url}/chat/completions", body)
    error = json.loads(answer.text)["error"]
    assert (answer.status, error["param"]) == (400, "tools")
    assert "its chat template has no tools; describe them in a message" in error["message"]
