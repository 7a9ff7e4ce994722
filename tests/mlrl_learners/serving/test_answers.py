import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from mlrl_learners.engine import TokenRow
from mlrl_learners.policies import ChatFormat, Policy, tiny_model

CHAT = "/chat/completions"
USER = [{"role": "user", "content": "a fox"}]
PROMPTS = ["a", "a longer prompt than the first", [5, 6, 7]]


@pytest.fixture(scope="module")
def policy():
    return Policy(*tiny_model())


def recomputed(policy, prompt, tokens, temperature):
    row = TokenRow(tuple(prompt), tuple(tokens))
    with torch.no_grad():
        return policy.logprobs([row], temperature=temperature)[0].tolist()


def texts(answer):
    return [choice.get("text", choice.get("message", {}).get("content")) for choice in answer]


@pytest.mark.parametrize("top_p", [1.0, 0.5])
def test_logprobs_are_those_of_the_policy(post, policy, top_p):
    found = post(
        "/completions", prompt=PROMPTS, n=2, max_tokens=9, temperature=0.7, top_p=top_p,
        logprobs=0, return_token_ids=True,
    )  # fmt: skip
    assert [choice["index"] for choice in found["choices"]] == list(range(6))
    for choice in found["choices"]:
        expected = recomputed(policy, choice["prompt_token_ids"], choice["token_ids"], 0.7)
        assert choice["logprobs"]["token_logprobs"] == pytest.approx(expected, abs=1e-4)
        assert choice["logprobs"]["top_logprobs"] is None


def test_the_likeliest_tokens_are_those_of_the_policy(post, policy):
    found = post(CHAT, messages=USER, max_tokens=4, seed=1, logprobs=True, top_logprobs=3,
                 return_token_ids=True, return_tokens_as_token_ids=True)  # fmt: skip
    prompt, (choice,) = found["prompt_token_ids"], found["choices"]
    for place, token in enumerate(choice["logprobs"]["content"]):
        assert token["token"] == f"token_id:{choice['token_ids'][place]}"
        before = choice["token_ids"][:place]
        rows = [TokenRow(tuple(prompt), (*before, other)) for other in range(258)]
        with torch.no_grad():
            scores = policy.logprobs(rows, temperature=1.0)[0].view(258, -1)[:, -1]
        best = scores.topk(3)
        assert [each["token"] for each in token["top_logprobs"]] == [
            f"token_id:{number}" for number in best.indices.tolist()
        ]
        shown = [each["logprob"] for each in token["top_logprobs"]]
        assert shown == pytest.approx(best.values.tolist(), abs=1e-4)


def test_a_seed_gives_the_same_answer_whatever_else_is_in_the_batch(post, server):
    body = {"messages": USER, "max_tokens": 12, "n": 2}
    alone = [texts(post(CHAT, **body, seed=seed)["choices"]) for seed in range(12)]
    before = server.batcher.num_batches
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda seed: post(CHAT, **body, seed=seed), range(12)))
    assert [texts(each["choices"]) for each in together] == alone
    assert len({text for group in alone for text in group}) == 24
    assert server.batcher.num_batches - before < 12


def test_longer_answers_begin_like_shorter_ones_of_the_seed(post):
    body = {"prompt": [1, 2], "seed": 4, "return_token_ids": True}
    short, long = (
        post("/completions", **body, max_tokens=length)["choices"][0]["token_ids"]
        for length in (3, 20)
    )
    assert long[:3] == short


def test_answers_without_a_seed_differ(post):
    drawn = [texts(post(CHAT, messages=USER, max_tokens=8)["choices"])[0] for _ in range(4)]
    assert len(set(drawn)) > 1


def test_temperature_0_is_greedy(post):
    found = [post(CHAT, messages=USER, max_tokens=8, temperature=0, n=2) for _ in range(2)]
    assert len({text for each in found for text in texts(each["choices"])}) == 1


def test_prompts_are_those_of_training(post):
    tokenizer = tiny_model()[1]
    for system in (None, "Be brief."):
        messages = [{"role": "system", "content": system}] if system else []
        found = post(CHAT, messages=[*messages, *USER], max_tokens=1, return_token_ids=True)
        assert found["prompt_token_ids"] == ChatFormat(tokenizer, system).encode("a fox")


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_texts_of_special_tokens_are_plain_text(post, role):
    special = tiny_model()[1].convert_tokens_to_ids("<|im_end|>")
    counts = []
    for text in ("ab<|im_end|>cd", "abcd"):
        messages = [{"role": role, "content": text}, {"role": "user", "content": "x"}]
        found = post(CHAT, messages=messages, max_tokens=1, return_token_ids=True)
        counts.append(found["prompt_token_ids"].count(special))
    assert counts == [2, 2]
    found = post("/completions", prompt="<|im_end|>", max_tokens=1, return_token_ids=True)
    assert special not in found["choices"][0]["prompt_token_ids"]


def events(text):
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("extra", [{}, {"n": 3}, {"stop": ["z", "\n"]}, {"top_logprobs": 2}])
def test_a_stream_adds_up_to_the_whole_answer(post, ask, server, extra):
    body = {"messages": USER, "max_tokens": 30, "seed": 9, "return_token_ids": True, **extra}
    body["logprobs"] = "top_logprobs" in extra
    whole = post(CHAT, **body)
    sent = ask(
        server.url + CHAT,
        {"model": "tiny-random", **body, "stream": True, "stream_options": {"include_usage": True}},
    )
    assert sent.headers["content-type"].startswith("text/event-stream")
    *parts, last = events(sent.text)
    assert last["usage"] == whole["usage"]
    assert parts[0]["choices"][0]["delta"]["role"] == "assistant"
    for choice in whole["choices"]:
        own = [c for each in parts for c in each["choices"] if c["index"] == choice["index"]]
        assert "".join(c["delta"]["content"] for c in own) == choice["message"]["content"]
        assert [t for c in own for t in c["token_ids"]] == choice["token_ids"]
        assert own[-1]["finish_reason"] == choice["finish_reason"]
        if body["logprobs"]:
            shown = [t for c in own if c["logprobs"] for t in c["logprobs"]["content"]]
            assert shown == choice["logprobs"]["content"]


def test_a_stop_text_ends_the_answer_before_it(post):
    whole = post("/completions", prompt=[3], max_tokens=40, seed=2)["choices"][0]["text"]
    stop = whole[4]
    found = post("/completions", prompt=[3], max_tokens=40, seed=2, stop=stop)["choices"][0]
    assert found["text"] == whole[: whole.index(stop)]
    assert found["finish_reason"] == "stop"


def test_a_stop_token_ends_the_answer_with_it(post):
    body = {"prompt": [3], "max_tokens": 10, "seed": 2, "return_token_ids": True}
    (whole,) = post("/completions", **body)["choices"]
    stop = whole["token_ids"][3]
    (found,) = post("/completions", **body, stop_token_ids=[stop])["choices"]
    assert found["token_ids"] == whole["token_ids"][: whole["token_ids"].index(stop) + 1]
    assert found["finish_reason"] == "stop"
