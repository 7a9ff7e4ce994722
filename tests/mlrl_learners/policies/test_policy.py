import pytest
import torch

from mlrl_learners.engine import TokenRow
from mlrl_learners.engine.decoding_task import DecodingTask
from mlrl_learners.errors import CheckpointError
from mlrl_learners.policies import AdapterConfig, ChatFormat, Policy, SamplingConfig, tiny_model
from mlrl_learners.seeding import CallSeeds
from tests.mlrl_learners.processors import needs_bfloat16

TEXTS = ["hi", "a much longer prompt that needs padding <|im_end|> inside", "mid one"]


def make_policy(seed=0, *, eos_bias=0.0, **options):
    """A tiny policy with an untied head: its tokens vary, and it ends now and then."""
    model, tokenizer = tiny_model(seed)
    generator = torch.Generator().manual_seed(seed)
    head = torch.nn.Linear(model.config.hidden_size, len(tokenizer))
    with torch.no_grad():
        head.weight.copy_(torch.randn(head.weight.shape, generator=generator) * 0.4)
        head.bias.zero_()
        head.bias[tokenizer.eos_token_id] = eos_bias
    model.lm_head = head
    return Policy(model, tokenizer, **options)


@pytest.fixture
def policy():
    return make_policy(eos_bias=4.0)


def prompts_of(policy, texts=TEXTS):
    chat = ChatFormat(policy.tokenizer)
    return [chat.encode(text) for text in texts]


def sample(policy, prompts, num_samples=4, seed=0, **options):
    sampling = SamplingConfig(max_new_tokens=12, temperature=0.7, top_p=0.9)
    seeds = None if seed is None else CallSeeds(seed).next(len(prompts))
    return policy.complete(prompts, num_samples, sampling, seeds=seeds, **options)


def tokens_of(answers):
    return [[completion.token_ids for completion in group] for group in answers]


def test_sampled_and_trained_logprobs_agree_at_the_first_step(policy):
    answers = [c for group in sample(policy, prompts_of(policy)) for c in group]
    assert len({len(c.token_ids) for c in answers}) > 1  # mixed lengths
    sampled = torch.tensor([lp for c in answers for lp in c.logprobs])
    rows = [TokenRow.sampled(c) for c in answers]
    trained, _ = policy.logprobs(rows, temperature=0.7)
    assert float((sampled - trained.detach()).abs().max()) < 1e-4


def test_a_prompts_tokens_do_not_depend_on_the_prompts_beside_it(policy):
    together = tokens_of(sample(policy, prompts_of(policy), seed=None))
    alone = [tokens_of(sample(policy, [p], seed=None))[0] for p in prompts_of(policy)]
    assert together == alone


def test_small_decode_batches_draw_the_same_tokens_as_one(policy):
    prompts = prompts_of(policy)
    assert tokens_of(sample(policy, prompts)) == tokens_of(sample(policy, prompts, max_rows=4))


def test_a_shared_prompt_cache_draws_the_same_tokens_as_none(policy, monkeypatch):
    prompts = prompts_of(policy)
    uniforms = torch.rand(3 * len(prompts), 12, generator=torch.Generator().manual_seed(7))
    monkeypatch.setattr(DecodingTask, "uniforms", lambda task: uniforms)
    once = sample(policy, [p for p in prompts for _ in range(3)], num_samples=1)
    grouped = sample(policy, prompts, num_samples=3)
    assert [c.token_ids for group in once for c in group] == [
        c.token_ids for group in grouped for c in group
    ]


def test_an_answer_depends_on_the_seed_of_its_prompt_alone(policy):
    """Neither other prompts, nor how many answers are asked for, nor their order matter."""
    prompts = prompts_of(policy)
    sampling = SamplingConfig(max_new_tokens=12, temperature=0.7, top_p=0.9)
    seeds = [11, 12, 13][: len(prompts)]
    groups = tokens_of(policy.complete(prompts, 3, sampling, seeds=seeds))
    backwards = policy.complete(prompts[::-1], 3, sampling, seeds=seeds[::-1])
    assert tokens_of(backwards) == groups[::-1]
    for prompt, seed, group in zip(prompts, seeds, groups, strict=True):
        assert tokens_of(policy.complete([prompt], 1, sampling, seeds=[seed])) == [group[:1]]
        assert tokens_of(policy.complete([prompt], 3, sampling, seeds=[seed + 50])) != [group]


def test_answers_end_with_the_end_of_sequence_or_at_the_limit(policy):
    for completion in (c for group in sample(policy, prompts_of(policy), 8) for c in group):
        ended = completion.token_ids[-1] in policy.eos_ids
        assert completion.finish_reason == ("stop" if ended else "length")
        assert ended or len(completion.token_ids) == 12
        assert not any(token in policy.eos_ids for token in completion.token_ids[:-1])
        assert len(completion.logprobs) == len(completion.token_ids)


def test_an_answer_may_be_one_token_long():
    policy = make_policy(eos_bias=500.0)
    (answers,) = sample(policy, prompts_of(policy)[:1])
    assert [completion.token_ids for completion in answers] == [policy.eos_ids[:1]] * 4
    assert answers[0].text == ""


def test_the_same_seed_draws_the_same_tokens_and_another_does_not(policy):
    prompts = prompts_of(policy)
    assert tokens_of(sample(policy, prompts)) == tokens_of(sample(policy, prompts))
    assert tokens_of(sample(policy, prompts)) != tokens_of(sample(policy, prompts, seed=1))


@needs_bfloat16
def test_bfloat16_autocast_leaves_the_weights_in_float32():
    policy = make_policy(precision="bf16")
    sample(policy, prompts_of(policy))
    logprobs, _ = policy.logprobs([TokenRow([1, 2], [3, 4])], temperature=1.0)
    exact, _ = make_policy().logprobs([TokenRow([1, 2], [3, 4])], temperature=1.0)
    assert policy.model.model.embed_tokens.weight.dtype == torch.float32
    assert logprobs.dtype == torch.float32
    assert 0 < float((logprobs - exact).detach().abs().max()) < 0.2


def test_gradient_checkpointing_leaves_the_gradient_equal():
    def gradient(policy):
        policy.logprobs([TokenRow([1, 2], [3, 4, 5])], temperature=1.0)[0].sum().backward()
        return policy.model.model.embed_tokens.weight.grad

    plain, saving = gradient(make_policy()), gradient(make_policy(gradient_checkpointing=True))
    assert torch.allclose(plain, saving, atol=1e-6)


def test_saved_weights_come_back_to_the_bit(tmp_path):
    policy, other = Policy(*tiny_model(1)), Policy(*tiny_model(2))
    policy.save(tmp_path)
    other.load(tmp_path)
    for mine, theirs in zip(policy.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_weights_of_another_model_are_refused(tmp_path):
    model, tokenizer = tiny_model(hidden_size=16)
    Policy(model, tokenizer).save(tmp_path)
    with pytest.raises(CheckpointError, match="do not fit"):
        Policy(*tiny_model()).load(tmp_path)


def snapshot(model):
    """Everything about a model's modules and configuration, apart from its weights."""
    modules = [
        (
            name,
            id(module),
            type(module),
            module.training,
            {key: value for key, value in vars(module).items() if not key.startswith("_")},
            [
                list(hooks)
                for key, hooks in vars(module).items()
                if key.endswith("hooks") and hooks is not None
            ],
        )
        for name, module in model.named_modules()
    ]
    modes = [
        {key: value for key, value in state.items() if key not in ("training", "config")}
        for *_, state, _ in modules
    ]
    config = {**model.config.to_dict(), "attention": model.config._attn_implementation}
    weights = {name: (id(w), w.requires_grad) for name, w in model.named_parameters()}
    flat = [(*module[:4], module[5]) for module in modules]
    return flat, modes, config, model.generation_config.to_dict(), weights


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_policy_leaves_the_callers_model_as_it_was(family, checkpointing):
    model, tokenizer = tiny_model(family=family)
    model.config.attention_dropout = 0.1
    for module in model.modules():
        for name in ("p", "attention_dropout"):
            if hasattr(module, name):
                setattr(module, name, 0.1)
    model.train()
    model.get_decoder().eval()  # a mixture of modes
    model.register_forward_hook(lambda *_: None)
    before = snapshot(model)
    policy = Policy(model, tokenizer, gradient_checkpointing=checkpointing)
    assert snapshot(model) == before
    sample(policy, prompts_of(policy), num_samples=2)
    policy.logprobs([TokenRow([1, 2], [3, 4])], temperature=1.0)[0].sum().backward()
    policy.frozen_copy()
    assert snapshot(model) == before


def test_an_adapter_is_added_to_the_policy_and_not_to_the_callers_model():
    model, tokenizer = tiny_model()
    policy = Policy(model, tokenizer)
    modules = [(name, id(module)) for name, module in model.named_modules()]
    policy.freeze(AdapterConfig(rank=2), "tiny")
    policy.with_adapter("a", 0)
    assert [(name, id(module)) for name, module in model.named_modules()] == modules
    assert not any(module._forward_hooks for module in model.modules())


def test_a_policy_trains_the_weights_of_the_callers_model():
    model, tokenizer = tiny_model()
    policy = Policy(model, tokenizer)
    pairs = zip(policy.parameters(), model.parameters(), strict=True)
    assert all(ours is theirs for ours, theirs in pairs)
