"""Decoding without a KV cache, for models whose cache cannot mask padding."""

import pytest
import torch
from transformers import MambaConfig, MambaForCausalLM

import mlrl_learners
from mlrl_learners.engine import TokenRow
from mlrl_learners.engine.uncached_reader import UncachedReader
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import Policy, SamplingConfig, tiny_model
from mlrl_learners.policies.adapters import AdapterConfig
from mlrl_learners.seeding import CallSeeds
from mlrl_learners.testing import check_learner

PROMPTS = [[5, 6, 7], [*range(40, 51)], [9]]
pytestmark = pytest.mark.filterwarnings("ignore:.*sampled without a KV cache:RuntimeWarning")


@pytest.fixture
def mamba():
    """A random state-space model and its tokenizer."""
    tokenizer = tiny_model()[1]
    config = MambaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        state_size=4,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = MambaForCausalLM(config)
        for name, weight in model.named_parameters():
            if weight.dim() > 1 and "A_log" not in name:
                weight.normal_(0, 0.2)
    return model, tokenizer


def complete(policy, prompts=PROMPTS, *, seed=0, **options):
    sampling = SamplingConfig(max_new_tokens=12, temperature=0.7, top_p=1.0)
    seeds = None if seed is None else CallSeeds(seed).next(len(prompts))
    return policy.complete(prompts, 3, sampling, seeds=seeds, **options)


def tokens_of(groups):
    return [[answer.token_ids for answer in group] for group in groups]


def test_rows_of_any_padding_get_the_logits_that_they_get_alone(mamba):
    model, _ = mamba
    reader = UncachedReader(model.eval())
    cache = reader.cache()
    ids, seen = torch.tensor([[0, 0, 5], [7, 8, 9]]), torch.tensor([[0, 0, 1], [1, 1, 1]])
    with torch.no_grad():
        reader.read(ids, seen, seen, cache)
        cache.batch_repeat_interleave(2)
        cache.batch_select_indices(torch.tensor([1, 2, 3]))
        seen = torch.cat([seen, seen[:, -1:]], 1)[[0, 1, 1]]
        found = reader.read(torch.tensor([[3], [4], [6]]), seen, seen, cache)
        rows = [[5, 3], [7, 8, 9, 4], [7, 8, 9, 6]]
        alone = [model(torch.tensor([row])).logits[0, -1] for row in rows]
    assert torch.allclose(found, torch.stack(alone), atol=1e-5)


@pytest.mark.parametrize("seed", [0, None], ids=["sampled", "greedy"])
def test_answers_are_those_that_a_cache_gives(seed, monkeypatch):
    policy = Policy(*tiny_model())
    policy.eos_ids = tuple(range(30))  # some answers end early
    cached = complete(policy, seed=seed)
    policy.engine.override(reader="uncached")
    again = complete(policy, seed=seed)
    assert tokens_of(again) == tokens_of(cached)
    for ours, theirs in zip(again, cached, strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.logprobs == pytest.approx(other.logprobs, abs=1e-5)


def test_a_state_space_model_answers_as_if_each_prompt_stood_alone(mamba):
    policy = Policy(*mamba)
    together = tokens_of(complete(policy, seed=None))
    assert together == [tokens_of(complete(policy, [p], seed=None))[0] for p in PROMPTS]


def test_reading_again_is_said_once_when_a_model_is_loaded(mamba):
    with pytest.warns(RuntimeWarning, match="'mamba' models are sampled without a KV cache here"):
        policy = Policy(*mamba)
    assert policy.engine.mode.reader == "uncached"
    assert Policy(*tiny_model()).engine.mode.reader != "uncached"


def test_adapters_on_a_state_space_model_answer_by_row_as_they_do_alone(mamba, stir):
    base = Policy(*mamba)
    base.freeze(AdapterConfig(rank=2, targets=["in_proj", "x_proj"]), "mamba")
    ours, theirs = (base.with_adapter(name, 0) for name in "ab")
    for number, policy in enumerate((ours, theirs)):
        stir(policy, number)
    mixed = complete(ours, seed=None, adapters=["a", "b", "a"])
    apart = [complete(ours, seed=None), complete(theirs, seed=None)]
    assert tokens_of(mixed) == [tokens_of(apart[who])[i] for i, who in enumerate((0, 1, 0))]
    answer = mixed[0][0]
    row = TokenRow(answer.prompt_ids, answer.token_ids)
    trained, _ = ours.logprobs([row], temperature=1.0)
    assert trained.shape == (len(answer.token_ids),)
    trained.sum().backward()


def test_a_state_space_model_keeps_the_contract_of_a_learner(mamba):
    options = {
        "model": mamba,
        "sampling": {"max_new_tokens": 4},
        "compute": {"device": "cpu"},
    }
    check_learner(lambda: mlrl_learners.make("iac", agents=("left", "right"), **options))


def test_layers_that_peft_refuses_are_said_in_one_line(mamba):
    base = Policy(*mamba)
    base.freeze(AdapterConfig(rank=2), "mamba")
    with pytest.raises(ConfigError, match=r"targets.*'out_proj'") as caught:
        base.with_adapter("a", 0)
    assert "\n" not in str(caught.value)
