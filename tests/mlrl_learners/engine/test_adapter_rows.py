import pytest
import torch

from mlrl_learners.policies import ChatFormat, SamplingConfig
from mlrl_learners.seeding import CallSeeds

TEXTS = ["hi", "a much longer prompt that needs padding", "mid one", "hi"]
SAMPLING = SamplingConfig(
    max_new_tokens=12,
    temperature=0.7,
    top_p=0.9,
    renormalize=False,  # rounding may move a token over the edge of a nucleus, and its mass with it
)


@pytest.fixture(params=["llama", "gpt2"])
def policies(request, make_policies):
    return make_policies(["a", "b", "c"], family=request.param)


def tokens_of(answers):
    return [[completion.token_ids for completion in group] for group in answers]


def complete(policy, prompts, adapters, *, seed=None, num_samples=1, **options):
    seeds = None if seed is None else CallSeeds(seed).next(len(prompts))
    return policy.complete(
        prompts, num_samples, SAMPLING, seeds=seeds, adapters=adapters, **options
    )


def prompts_of(policy):
    return [ChatFormat(policy.tokenizer).encode(text) for text in TEXTS]


def test_one_batch_of_many_adapters_answers_as_one_by_one(policies):
    prompts, names = prompts_of(policies[0]), ["b", None, "a", "c"]
    together = tokens_of(complete(policies[0], prompts, names))
    by_name = {policy.adapter: policy for policy in policies}
    alone = [
        tokens_of(complete(by_name[name], [prompt], None))[0]
        for prompt, name in zip(prompts, names, strict=True)
    ]
    assert together == alone
    assert together[0] != together[3]  # the same prompt, another adapter


def test_the_same_numbers_draw_the_same_samples_in_one_batch_and_one_by_one(policies):
    """Rows end at different times and leave the batch; each keeps its adapter."""
    prompts, names = prompts_of(policies[0]), ["b", None, "a", "c"]
    together = complete(policies[0], prompts, names, seed=0, num_samples=3)
    alone = [
        policies[0].complete([prompt], 3, SAMPLING, seeds=[seed], adapters=[name])[0]
        for prompt, name, seed in zip(prompts, names, CallSeeds(0).next(4), strict=True)
    ]
    assert tokens_of(together) == tokens_of(alone)
    for ours, theirs in zip(together, alone, strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.logprobs == pytest.approx(other.logprobs, abs=1e-4)
    assert len({len(tokens) for group in tokens_of(together) for tokens in group}) > 1


def test_small_decode_batches_keep_each_rows_adapter(policies):
    prompts, names = prompts_of(policies[0]), ["b", None, "a", "c"]
    whole = complete(policies[0], prompts, names, seed=0, num_samples=2)
    small = complete(policies[0], prompts, names, seed=0, num_samples=2, max_rows=2)
    assert tokens_of(whole) == tokens_of(small)


def test_a_policy_answers_with_its_own_adapter_by_default(policies):
    prompts = prompts_of(policies[0])
    for policy in policies:
        own = complete(policy, prompts, None)
        assert tokens_of(own) == tokens_of(complete(policies[0], prompts, [policy.adapter] * 4))


def test_what_was_trained_in_between_is_what_is_sampled_from(policies, stir):
    base, policy, *_ = policies
    prompts = prompts_of(base)
    before = tokens_of(complete(base, prompts, ["a"] * 4))
    stir(policy, 9)
    assert tokens_of(complete(base, prompts, ["a"] * 4)) != before


def test_autocast_samples_what_it_trains(make_policies):
    from mlrl_learners.engine import TokenRow

    base, policy, _ = make_policies(precision="bf16")
    (answers, _) = complete(base, prompts_of(base)[:2], ["a", "b"], seed=0, num_samples=4)
    rows = [TokenRow.sampled(c) for c in answers]
    trained, _ = policy.logprobs(rows, temperature=0.7)
    sampled = torch.tensor([lp for c in answers for lp in c.logprobs])
    assert float((sampled - trained.detach()).abs().max()) < 0.3
