import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlrl_learners.policies import ChatFormat, tiny_model

NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
)
SILENT_SYSTEM = "{% for m in messages if m['role'] == 'user' %}[user]{{ m['content'] }}{% endfor %}"


def tokenizer_with(template):
    _, tokenizer = tiny_model()
    tokenizer.chat_template = template
    return tokenizer


TOKENIZER = tiny_model()[1]


def rendered(tokenizer, text, system=None):
    return tokenizer.decode(ChatFormat(tokenizer, system).encode(text))


def test_a_template_with_a_system_role_gets_a_system_message():
    text = rendered(TOKENIZER, "hello", "be brief")
    assert text.startswith("<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhello")
    assert text.endswith("<|im_start|>assistant\n")


def test_a_template_that_strips_messages_gets_a_system_message_too():
    _, tokenizer = tiny_model()
    tokenizer.chat_template = tokenizer.chat_template.replace("['content']", "['content'] | trim")
    text = rendered(tokenizer, "hello", "be brief\n")  # as a block of YAML ends
    assert text.startswith("<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhello")


@pytest.mark.parametrize("template", [NO_SYSTEM, SILENT_SYSTEM])
def test_a_template_without_a_system_role_gets_it_before_the_observation(template):
    text = rendered(tokenizer_with(template), "hello", "be brief")
    assert text == "[user]be brief\n\nhello"


def test_a_model_without_a_template_reads_the_text_itself():
    assert rendered(tokenizer_with(None), "hello") == "hello"
    assert rendered(tokenizer_with(None), "hello", "be brief") == "be brief\n\nhello"


def test_an_empty_text_without_a_template_still_has_a_token():
    assert len(ChatFormat(tokenizer_with(None)).encode("")) == 1


@settings(max_examples=40)
@given(text=st.text(st.characters(), max_size=300), limit=st.integers(40, 200))
def test_any_text_fits_the_limit_and_keeps_the_template(text, limit):
    ids = ChatFormat(TOKENIZER, None, limit).encode(text)
    decoded = TOKENIZER.decode(ids)
    assert 0 < len(ids) <= max(limit, len(ChatFormat(TOKENIZER).encode("")))
    assert decoded.startswith("<|im_start|>user\n")
    assert decoded.endswith("<|im_start|>assistant\n")


def test_a_long_text_loses_its_middle():
    text = "start " + "x" * 5000 + " end"
    decoded = TOKENIZER.decode(ChatFormat(TOKENIZER, None, 200).encode(text))
    assert "start" in decoded
    assert "end<|im_end|>" in decoded
    assert "[...]" in decoded
