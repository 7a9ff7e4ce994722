"""A watch sees every token when it is drawn."""

import pytest

from mlrl_learners.engine import SamplingConfig

PROMPTS = [[5, 6, 7], [8], [9, 10]]


class Watch:
    def __init__(self):
        self.seen = {}

    def see(self, answers, draw, logits):
        scores = logits.log_softmax(-1)
        for row, place in enumerate(answers):
            token, logprob = int(draw.tokens[row]), float(draw.logprobs[row])
            assert float(scores[row, token]) == pytest.approx(logprob, abs=1e-5)
            self.seen.setdefault(place, []).append((token, logprob))


@pytest.fixture(scope="module")
def policy(make_policies):
    return make_policies()[1]


def sample(policy, **options):
    sampling = SamplingConfig(max_new_tokens=20, temperature=1.0, top_p=1.0)
    return policy.engine.sample(
        PROMPTS, 2, sampling, eos_ids=policy.eos_ids, adapters=[policy.adapter] * 3, **options
    )


@pytest.mark.parametrize("max_rows", [64, 2])
def test_a_watch_sees_the_tokens_of_every_answer_and_changes_none(policy, max_rows):
    watch = Watch()
    plain, watched = (
        sample(policy, seeds=[3, 4, 5], max_rows=max_rows, watch=each) for each in (None, watch)
    )
    assert watched == plain
    assert len({len(answer.token_ids) for group in plain for answer in group}) > 1
    for prompt, group in enumerate(plain):
        for number, answer in enumerate(group):
            expected = list(zip(answer.token_ids, answer.logprobs, strict=True))
            assert watch.seen[prompt, number] == expected
