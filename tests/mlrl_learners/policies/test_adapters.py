import contextlib

import pytest
import torch

from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import CheckpointError, ConfigError, UnknownNameError
from mlrl_learners.policies import ChatFormat, Policy, SamplingConfig, tiny_model
from mlrl_learners.policies.adapters import AdapterConfig, fingerprint
from tests.mlrl_learners.processors import needs_bfloat16

TEXTS = ["hi", "a much longer prompt that needs padding", "mid one"]
SAMPLING = SamplingConfig(max_new_tokens=12, temperature=0.7, top_p=0.9)
FAMILIES = ["llama", "gpt2"]


def prompts_of(policy):
    chat = ChatFormat(policy.tokenizer)
    return [chat.encode(text) for text in TEXTS]


def sample(policy, adapters=None, num_samples=4):
    prompts = prompts_of(policy)
    seeds = range(len(prompts))
    return policy.complete(prompts, num_samples, SAMPLING, seeds=seeds, adapters=adapters)


def rows_of(answers):
    return [TokenRow.sampled(c) for group in answers for c in group]


def logprobs(policy, rows):
    return policy.logprobs(rows, temperature=0.7)[0].detach()


ROWS = [TokenRow([5, 6, 7], [8, 9]), TokenRow([5, 6, 7], [10]), TokenRow([11], [12, 13, 14])]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_new_adapter_changes_nothing(family, make_policies):
    base, fresh = make_policies(["a"], family=family, stirred=False)
    plain = Policy(base.model, base.tokenizer)
    assert torch.equal(logprobs(fresh, ROWS), logprobs(base, ROWS))
    assert torch.equal(logprobs(fresh, ROWS), logprobs(plain, ROWS))


@pytest.mark.parametrize("family", FAMILIES)
def test_sampled_and_trained_logprobs_agree_at_the_first_step(family, make_policies):
    _, _, policy = make_policies(family=family)
    answers = sample(policy, num_samples=16)
    rows = rows_of(answers)
    assert len({len(row.token_ids) for row in rows}) > 1  # mixed lengths
    sampled = torch.tensor([lp for group in answers for c in group for lp in c.logprobs])
    assert float((sampled - logprobs(policy, rows)).abs().max()) < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_logprobs_are_those_of_peft_with_the_same_files(family, tmp_path, make_policies):
    from peft import PeftModel

    _, policy, _ = make_policies(family=family)
    policy.save(tmp_path)
    model, _ = tiny_model(family=family)
    model.lm_head = policy.model.lm_head
    theirs = PeftModel.from_pretrained(model, tmp_path)
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    with torch.no_grad():
        scores = torch.log_softmax(theirs(input_ids=ids).logits[0] / 0.7, -1)
    expected = scores[[2, 3], [8, 9]]
    assert torch.allclose(logprobs(policy, ROWS)[:2], expected, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_reach_the_active_adapter_alone(family, make_policies):
    base, policy, other = make_policies(family=family)
    policy.logprobs(ROWS, temperature=1.0)[0].sum().backward()
    assert all(float(weight.grad.abs().max()) > 0 for weight in policy.parameters())
    assert all(weight.grad is None for weight in other.parameters())
    mine = {id(weight) for weight in policy.parameters()}
    assert all(w.grad is None for w in base.model.parameters() if id(w) not in mine)


def test_the_weights_of_the_base_need_no_gradient_and_those_of_every_adapter_do(make_policies):
    base, *policies = make_policies(["a", "b", "c"])
    adapted = {id(weight) for policy in policies for weight in policy.parameters()}
    for weight in base.model.parameters():
        assert weight.requires_grad == (id(weight) in adapted)
    assert base.parameters() == []


def test_playing_and_reading_leave_what_needs_a_gradient_as_it_was(make_policies):
    base, policy, other = make_policies()
    before = [weight.requires_grad for weight in base.model.parameters()]
    sample(policy, ["a", None, "b"])
    logprobs(other, ROWS)
    logprobs(base, ROWS)
    assert [weight.requires_grad for weight in base.model.parameters()] == before


def test_equal_seeds_make_equal_adapters_and_leave_the_global_generator_alone(make_policies):
    base, one, two = make_policies(stirred=False)
    state = torch.random.get_rng_state()
    other = base.with_adapter("other", 1)
    assert torch.equal(torch.random.get_rng_state(), state)
    downs = [policy.parameters()[0] for policy in (one, two, other)]
    assert torch.equal(downs[0], downs[1])
    assert not torch.equal(downs[0], downs[2])


@pytest.mark.parametrize("packs", [True, False])
def test_reading_shared_prompts_once_leaves_logprobs_and_gradients_equal(packs, make_policies):
    def outcome(policy):
        found = policy.logprobs(ROWS, temperature=0.7)[0]
        found.sum().backward()
        return found.detach(), torch.cat([w.grad.flatten() for w in policy.parameters()])

    _, policy, _ = make_policies()
    _, apart, _ = make_policies()
    policy.engine.override(packs_prompts=packs)
    apart.engine.override(packs_prompts=False)
    assert Policy(*tiny_model()).engine.mode.packs_prompts
    for ours, theirs in zip(outcome(policy), outcome(apart), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_gradient_checkpointing_computes_again_with_the_same_adapter(make_policies):
    def gradient(**options):
        base, policy, _ = make_policies(**options)
        loss = policy.logprobs(ROWS, temperature=1.0)[0].sum()
        with torch.no_grad():
            logprobs(base, ROWS)  # a reference, read between the pass and its gradient
        loss.backward()
        return torch.cat([weight.grad.flatten() for weight in policy.parameters()])

    assert torch.allclose(gradient(), gradient(gradient_checkpointing=True), rtol=1e-5, atol=1e-5)


def test_a_reference_is_the_base_itself_and_not_a_copy(make_policies):
    base, policy, _ = make_policies()
    reference = policy.frozen_copy()
    assert reference.model is policy.model
    assert torch.equal(logprobs(reference, ROWS), logprobs(base, ROWS))
    assert not torch.allclose(logprobs(reference, ROWS), logprobs(policy, ROWS), atol=1e-3)


def test_only_the_layers_that_are_asked_for_get_adapters(make_policies):
    base, policy = make_policies(["a"], targets=["q_proj", "mlp.up_proj"])
    adapted = {id(weight) for weight in policy.parameters()}
    names = {n for n, weight in base.model.named_parameters() if id(weight) in adapted}
    assert len(names) == 2 * 2 * 2  # layers, targets, matrices
    assert all("q_proj" in name or "up_proj" in name for name in names)


def test_a_layer_that_is_none_is_named_with_the_nearest(make_policies):
    with pytest.raises(UnknownNameError, match=r"'q_pro'; did you mean 'q_proj'"):
        make_policies(targets=["q_pro"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": -1}, "rank must be 0"),
        ({"rank": 2, "alpha": 0}, "alpha must be at least 1, got 0"),
        ({"targets": ["q_proj"]}, r"targets \['q_proj'\] need a rank"),
    ],
)
def test_values_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        AdapterConfig(**options)


def test_alpha_over_rank_scales_what_an_adapter_does(make_policies):
    _, one, _ = make_policies(alpha=3)
    _, two, _ = make_policies(alpha=6)
    with torch.no_grad():
        for weight in two.parameters()[1::2]:  # the upper matrices
            weight.mul_(0.5)
    assert torch.allclose(logprobs(one, ROWS), logprobs(two, ROWS), atol=1e-5)


def test_bfloat16_bases_have_float32_adapters(stir):
    model, tokenizer = tiny_model()
    base = Policy(model.to(torch.bfloat16), tokenizer)
    base.freeze(AdapterConfig(rank=2), "tiny")
    policy = base.with_adapter("a", 0)
    assert {weight.dtype for weight in policy.parameters()} == {torch.float32}
    stir(policy)
    policy.logprobs(ROWS, temperature=1.0)[0].sum().backward()
    assert all(weight.grad.dtype == torch.float32 for weight in policy.parameters())
    assert sample(policy, ["a", None, "a"])


@needs_bfloat16
def test_bfloat16_autocast_stays_close_to_float32(make_policies):
    _, exact, _ = make_policies()
    _, rough, _ = make_policies(precision="bf16")
    difference = (logprobs(exact, ROWS) - logprobs(rough, ROWS)).abs().max()
    assert 0 < float(difference) < 0.3


def test_a_saved_adapter_comes_back_to_the_bit_without_the_base(tmp_path, make_policies):
    _, policy, other = make_policies()
    policy.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
        "base.json",
    ]
    other.load(tmp_path)
    for mine, theirs in zip(policy.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 1}, "belongs to the weights of 'tiny', which are not those of 'tiny' here"),
        ({"rank": 4}, r"of another rank than lora\.rank 4"),
        ({"targets": ["q_proj"]}, "on other layers"),
    ],
)
def test_an_adapter_of_something_else_is_refused(options, message, tmp_path, make_policies):
    _, policy, _ = make_policies()
    policy.save(tmp_path)
    _, other, _ = make_policies(**options)
    with pytest.raises(CheckpointError, match=message):
        other.load(tmp_path)


@pytest.mark.parametrize("name", ["base.json", "adapter_model.safetensors"])
@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_a_damaged_adapter_is_refused(name, damage, tmp_path, make_policies):
    _, policy, _ = make_policies()
    policy.save(tmp_path)
    damage(tmp_path / name)
    with pytest.raises(CheckpointError):
        policy.load(tmp_path)


def test_fingerprints_tell_weights_and_types_apart():
    model = tiny_model()[0]
    marks = {fingerprint(tiny_model(seed)[0]) for seed in (0, 0, 1)}
    marks.add(fingerprint(model.to(torch.bfloat16)))
    assert len(marks) == 3


def test_adapters_need_a_frozen_base():
    with pytest.raises(ConfigError, match="freeze the policy first"):
        Policy(*tiny_model()).with_adapter("a", 0)


def test_an_error_inside_leaves_the_adapter_that_was_active(make_policies):
    base, policy, _ = make_policies()
    before = logprobs(policy, ROWS)
    with policy.engine.adapters.active("a"):
        with contextlib.suppress(ZeroDivisionError), policy.engine.adapters.active_by_row(["b"]):
            raise ZeroDivisionError
        found = base.model(input_ids=torch.tensor([[5, 6, 7]])).logits[0, -1] / 0.7
    assert torch.allclose(torch.log_softmax(found, -1)[8], before[0], atol=1e-5)
