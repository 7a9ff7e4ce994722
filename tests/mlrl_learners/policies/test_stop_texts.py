"""Answers end with the token that completes a stop text, and nothing after it is kept."""

from types import SimpleNamespace

import pytest

from mlrl_learners.engine import SamplingConfig
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import Policy, StopTexts
from mlrl_learners.policies.tiny import tiny_model
from mlrl_learners.seeding import CallSeeds

PROMPTS = [list(range(5)), list(range(9)), [7, 7]]


@pytest.fixture(scope="module")
def policy():
    return Policy(*tiny_model())


def sampled(policy, explore=True, **options):
    config = SamplingConfig(**{"max_new_tokens": 24, "temperature": 0.8, **options})
    seeds = CallSeeds(3).next(len(PROMPTS)) if explore else None
    groups = policy.complete(PROMPTS, 6, config, seeds=seeds)
    return [each for group in groups for each in group]


@pytest.mark.parametrize("options", [{}, {"top_p": 0.9}, {"explore": False}], ids=str)
def test_an_answer_is_the_usual_one_up_to_its_stop_text(policy, options):
    plain = sampled(policy, **options)
    written = "".join(each.text for each in plain)
    stops = sorted({letter for letter in written if letter.isascii()}, key=written.count)[-3:]
    texts = StopTexts(policy.tokenizer, stops)
    found = sampled(policy, stop=stops, **options)
    ended = 0
    for before, after in zip(plain, found, strict=True):
        count = texts.num_kept(before.token_ids)
        assert after.token_ids == before.token_ids[:count]
        assert after.logprobs == pytest.approx(before.logprobs[:count], abs=1e-5)
        if any(stop in before.text for stop in stops):
            ended += 1
            assert after.finish_reason == "stop"
            assert before.text.startswith(after.text)
            assert not any(stop in after.text for stop in stops)
        if after.nucleus is not None:
            assert len(after.nucleus.sizes) == count
    assert ended > 0


def test_rows_that_a_text_ends_leave_the_batch(policy, monkeypatch):
    """With a stop text that every answer begins with, one token of each is sampled."""
    steps = []
    texts = StopTexts(policy.tokenizer, ["x"])
    monkeypatch.setattr(texts, "found", lambda tails: steps.append(1) or [True] * len(tails))
    answers = policy.engine.sample(
        PROMPTS,
        4,
        SamplingConfig(max_new_tokens=16),
        eos_ids=policy.eos_ids,
        seeds=range(len(PROMPTS)),
        texts=texts,
    )
    assert len(steps) == 1
    assert all(len(each.token_ids) == 1 and each.ended for group in answers for each in group)


def test_the_kept_tokens_are_the_shortest_that_contain_a_stop_text():
    decode = SimpleNamespace(
        batch_decode=lambda rows, **_: ["".join(chr(97 + i) for i in row) for row in rows]
    )
    texts = StopTexts(decode, ["cd", "f"])
    assert texts.num_kept([0, 1, 2, 3, 4, 5]) == 4
    assert texts.num_kept([5, 2, 3]) == 1
    assert texts.num_kept([0, 1, 2]) == 3
    assert texts.cut("abcdef") == "ab"
    assert texts.cut("ab") == "ab"


@pytest.mark.parametrize("stop", [[""], [3]])
def test_an_empty_stop_text_is_refused(stop):
    with pytest.raises(ConfigError, match="stop must be a list of texts"):
        SamplingConfig(stop=stop)
