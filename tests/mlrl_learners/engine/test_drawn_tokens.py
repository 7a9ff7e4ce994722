"""Nuclei of sampled tokens: sampled log-probabilities equal the trained ones when truncated."""

import copy
import pickle

import pytest
import torch

from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import NumericsError
from mlrl_learners.policies import ChatFormat, SamplingConfig
from mlrl_learners.seeding import CallSeeds

TEXTS = ["hi", "a much longer prompt that needs padding", "mid one"]
TRUNCATIONS = [{"top_p": 0.6}, {"top_p": 0.9}, {"top_p": 1.0, "top_k": 5}, {"top_k": 5}]


def answers_of(policy, *, seed=0, num_samples=4, adapters=None, max_rows=64, **options):
    """Answers to prompts of three lengths; some end early and leave the batch."""
    prompts = [ChatFormat(policy.tokenizer).encode(text) for text in TEXTS]
    config = {"max_new_tokens": 12, "temperature": 0.7, **options}
    seeds = None if seed is None else CallSeeds(seed).next(len(prompts))
    groups = policy.complete(
        prompts, num_samples, SamplingConfig(**config), seeds=seeds,
        adapters=adapters, max_rows=max_rows,
    )  # fmt: skip
    return [answer for group in groups for answer in group]


def largest_gap(policy, answers):
    """Compare sampled with trained log-probabilities, as an update reads them."""
    worst = 0.0
    rows = [TokenRow.sampled(answer) for answer in answers]
    for numbers in policy.micro_batches(rows, 200):  # several, of packed prompts
        trained, _ = policy.logprobs([rows[i] for i in numbers], temperature=0.7)
        sampled = torch.tensor([lp for i in numbers for lp in answers[i].logprobs])
        worst = max(worst, float((trained.detach() - sampled).abs().max()))
    return worst


@pytest.mark.parametrize("options", TRUNCATIONS)
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_sampled_logprobs_are_those_that_are_trained(family, options, make_policies):
    base, *_ = make_policies(family=family)
    answers = answers_of(base, **options)
    assert len({len(answer.token_ids) for answer in answers}) > 1  # rows left the batch
    assert largest_gap(base, answers) < 1e-5


@pytest.mark.parametrize("options", TRUNCATIONS)
def test_rows_of_several_adapters_are_sampled_as_each_is_trained(options, make_policies):
    base, one, other = make_policies()
    answers = answers_of(base, adapters=["a", "b", None], **options)
    for number, policy in enumerate((one, other, base)):
        assert largest_gap(policy, answers[4 * number : 4 * (number + 1)]) < 1e-5


def test_a_nucleus_holds_the_likeliest_tokens_and_what_was_drawn(make_policies):
    base, *_ = make_policies()
    for answer in answers_of(base, top_p=0.6):
        nucleus = answer.nucleus
        assert len(nucleus.sizes) == len(nucleus.log_masses) == len(answer.token_ids)
        row = TokenRow(answer.prompt_ids, answer.token_ids)
        whole, _ = base.logprobs([row], temperature=0.7)
        kept = torch.tensor(answer.logprobs) + torch.from_numpy(nucleus.log_masses)
        assert torch.allclose(whole.detach(), kept, atol=1e-5)
        ids = torch.from_numpy(nucleus.token_ids).split(nucleus.sizes.tolist())
        ends = torch.tensor([[*answer.prompt_ids, *answer.token_ids]])
        logits = base.model(input_ids=ends).logits[0, len(answer.prompt_ids) - 1 : -1] / 0.7
        for token, members, scores in zip(answer.token_ids, ids, logits, strict=True):
            assert token in members.tolist()
            mass = float(scores.softmax(-1)[members].sum())
            assert mass >= 0.6 - 1e-5
            assert members.tolist() == scores.argsort(descending=True)[: len(members)].tolist()
            assert mass - float(scores.softmax(-1)[members[-1]]) < 0.6 + 1e-5


def test_nuclei_wider_than_the_first_candidates_are_kept_whole(make_policies, monkeypatch):
    monkeypatch.setattr("mlrl_learners.engine.sampling.FIRST_CANDIDATES", 1)
    base, *_ = make_policies()
    answers = answers_of(base, top_p=0.6)
    sizes = {size for answer in answers for size in answer.nucleus.sizes.tolist()}
    assert min(sizes) == 1
    assert max(sizes) > 8
    assert largest_gap(base, answers) < 1e-5


def test_nuclei_do_not_depend_on_who_shares_the_batch(make_policies):
    base, *_ = make_policies()
    for mine, other in zip(answers_of(base), answers_of(base, max_rows=4), strict=True):
        assert mine.token_ids == other.token_ids
        assert mine.nucleus.token_ids.tolist() == other.nucleus.token_ids.tolist()
        assert mine.nucleus.sizes.tolist() == other.nucleus.sizes.tolist()


@pytest.mark.parametrize("options", [{"top_p": 1.0}, {"renormalize": False}, {"seed": None}])
def test_without_truncation_and_when_greedy_no_nucleus_is_kept(options, make_policies):
    base, *_ = make_policies()
    answers = answers_of(base, **options)
    assert {answer.nucleus for answer in answers} == {None}
    assert largest_gap(base, answers) < 1e-5


@pytest.mark.parametrize("duplicate", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_an_answer_travels_with_its_nucleus(duplicate, make_policies):
    base, *_ = make_policies()
    answer = max(answers_of(base), key=lambda each: len(each.token_ids))
    other = duplicate(answer)
    assert (other, hash(other)) == (answer, hash(answer))
    for name in ("token_ids", "sizes", "log_masses"):
        mine, theirs = getattr(answer.nucleus, name), getattr(other.nucleus, name)
        assert mine.dtype == theirs.dtype
        assert mine.tolist() == theirs.tolist()


def test_under_autocast_what_is_sampled_is_about_what_is_trained(make_policies):
    _, policy, _ = make_policies(precision="bf16")
    answers = answers_of(policy, top_p=0.9)
    assert largest_gap(policy, answers) < 0.3


@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("options", [{"top_p": 1.0}, {"top_p": 0.9}])
def test_tokens_of_logits_that_are_no_numbers_are_no_answer(options, seed, make_policies):
    base, *_ = make_policies(family="gpt2")
    with torch.no_grad():
        base.model.get_output_embeddings().weight[3] = torch.nan
    with pytest.raises(NumericsError, match="logits that are not finite"):
        answers_of(base, seed=seed, **options)
