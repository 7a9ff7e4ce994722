import pytest
import torch
import transformers

from mlrl_learners.engine.kernels import head
from mlrl_learners.engine.kernels.head import head_logprobs
from mlrl_learners.engine.onednn_layers import use_onednn_layers
from mlrl_learners.policies import tiny_model

TEMPERATURE = 0.7


@pytest.fixture
def model():
    model, _ = tiny_model(0)
    use_onednn_layers(model)
    return model


@pytest.fixture
def hidden(model):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(11, model.config.hidden_size, generator=generator)


def slow(model, hidden, targets):
    """Every logit at once, by autograd alone."""
    logprobs = torch.log_softmax(hidden @ model.lm_head.weight.t() / TEMPERATURE, -1)
    entropy = -(logprobs.exp() * logprobs).sum(-1)
    return logprobs[torch.arange(len(targets)), targets], entropy


def fused(model, hidden, targets):
    return head_logprobs(
        model, hidden, targets, TEMPERATURE, with_entropy=True, entropy_gradient=True
    )


def gradients(model, hidden, function, weights):
    """Return values and gradients of a weighted sum of both results."""
    model.zero_grad()
    states = hidden.clone().requires_grad_()
    targets = torch.arange(len(hidden)) * 7 % model.config.vocab_size
    logprobs, entropy = function(model, states, targets)
    coefficients = torch.linspace(-1, 2, len(hidden))
    total = (
        weights[0] * (logprobs * coefficients).sum() + weights[1] * (entropy * coefficients).sum()
    )
    total.backward()
    return logprobs, entropy, states.grad, model.lm_head.weight.grad.clone()


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0), (1.0, -0.3)])
@pytest.mark.parametrize("plain", [True, False])
def test_values_and_gradients_equal_those_of_every_logit_at_once(
    model, hidden, weights, plain, monkeypatch
):
    monkeypatch.setattr(head, "_is_bias_free_product", lambda _: plain)
    monkeypatch.setitem(head.CHUNK_TOKENS, "cpu", 4)
    for ours, theirs in zip(
        gradients(model, hidden, fused, weights),
        gradients(model, hidden, slow, weights),
        strict=True,
    ):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_entropy_has_no_gradient_unless_asked_for(model, hidden):
    states = hidden.requires_grad_()
    targets = torch.zeros(len(hidden), dtype=torch.long)
    logprobs, entropy = head_logprobs(model, states, targets, 1.0, with_entropy=True)
    assert logprobs.requires_grad
    assert not entropy.requires_grad
    _, none = head_logprobs(model, states, targets, 1.0, with_entropy=False)
    assert not none.any()


def test_a_frozen_head_gets_no_gradient(model, hidden):
    model.lm_head.weight.requires_grad_(False)
    states = hidden.requires_grad_()
    targets = torch.zeros(len(hidden), dtype=torch.long)
    head_logprobs(model, states, targets, 1.0, with_entropy=False)[0].sum().backward()
    assert states.grad is not None
    assert model.lm_head.weight.grad is None


@pytest.mark.parametrize(
    ("name", "value"), [("final_logit_softcapping", 2.0), ("logit_scale", 0.5)]
)
def test_logits_that_a_family_alters_are_altered(model, hidden, name, value):
    setattr(model.config, name, value)
    targets = torch.zeros(len(hidden), dtype=torch.long)
    logits = hidden @ model.lm_head.weight.t()
    altered = torch.tanh(logits / value) * value if "cap" in name else logits * value
    logprobs, _ = head_logprobs(model, hidden, targets, 1.0, with_entropy=False)
    assert torch.allclose(logprobs, torch.log_softmax(altered, -1)[:, 0], atol=1e-5)


FAMILIES = [
    ("Granite", {"logits_scaling": 4.0}),
    ("Cohere", {"logit_scale": 0.25}),
    ("Gemma2", {"final_logit_softcapping": 0.5, "head_dim": 8}),
    ("Qwen3", {"head_dim": 8}),
    ("Phi", {}),
]


def small(family, options):
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(
        vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, pad_token_id=0, **options,
    )  # fmt: skip
    return getattr(transformers, f"{family}ForCausalLM")(config).eval()


@pytest.mark.parametrize(("family", "options"), FAMILIES)
def test_logprobs_are_those_of_the_familys_own_forward(family, options):
    model = small(family, options)
    ids = torch.tensor([[5, 6, 7, 8]])
    own = torch.log_softmax(model(input_ids=ids).logits[0, :-1].float(), -1)
    states = model.get_decoder()(input_ids=ids).last_hidden_state[0, :-1]
    logprobs, _ = head_logprobs(model, states, ids[0, 1:], 1.0, with_entropy=False)
    assert torch.allclose(logprobs, own[torch.arange(3), ids[0, 1:]], atol=1e-5)


def test_an_adapter_on_the_head_is_part_of_it(model, hidden):
    peft = pytest.importorskip("peft")
    adapter = peft.LoraConfig(target_modules=["lm_head"], r=2, init_lora_weights=False)
    adapted = peft.get_peft_model(model, adapter).base_model.model
    targets = torch.zeros(len(hidden), dtype=torch.long)
    logprobs, _ = head_logprobs(adapted, hidden, targets, 1.0, with_entropy=False)
    own = torch.log_softmax(adapted.lm_head(hidden), -1)[:, 0]
    assert torch.allclose(logprobs, own, atol=1e-5)
    logprobs.sum().backward()
    assert adapted.lm_head.lora_B["default"].weight.grad is not None


def test_autocast_computes_in_bfloat16_and_returns_float32(model, hidden):
    exact = gradients(model, hidden, fused, (1.0, 0.0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = gradients(model, hidden, fused, (1.0, 0.0))
    assert all(part.dtype == torch.float32 for part in rough)
    for ours, theirs in zip(rough, exact, strict=True):
        assert not torch.equal(ours, theirs)
        assert torch.allclose(ours, theirs, atol=0.05 * float(theirs.detach().abs().max()))


@pytest.mark.parametrize("kept_chunks", [0, 1, 2, 3])
@pytest.mark.parametrize("weights", [(1.0, 0.0), (1.0, -0.3)])
def test_logits_that_are_kept_give_the_gradients_of_those_computed_again(
    model, hidden, weights, kept_chunks, monkeypatch
):
    monkeypatch.setitem(head.CHUNK_TOKENS, "cpu", 4)
    results = []
    for chunks in (0, kept_chunks):
        monkeypatch.setattr(head, "KEPT_BYTES", chunks * 4 * 4 * model.config.vocab_size)
        results.append(gradients(model, hidden, fused, weights))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


def test_a_second_backward_pass_gives_the_same_gradient(model, hidden):
    states = hidden.clone().requires_grad_()
    targets = torch.arange(len(hidden))
    logprobs, _ = head_logprobs(model, states, targets, TEMPERATURE, with_entropy=True)
    passes = [
        torch.autograd.grad(logprobs.sum(), states, retain_graph=True)[0].clone() for _ in range(2)
    ]
    assert torch.equal(*passes)


@pytest.mark.parametrize(("kept_bytes", "products"), [(0, 4), (1 << 20, 2)])
def test_products_whose_logits_are_kept_are_not_repeated(
    model, hidden, kept_bytes, products, monkeypatch
):
    monkeypatch.setattr(head, "KEPT_BYTES", kept_bytes)
    monkeypatch.setitem(head.CHUNK_TOKENS, "cpu", 6)  # two chunks
    targets = torch.zeros(len(hidden), dtype=torch.long)
    logprobs, _ = head_logprobs(model, hidden.requires_grad_(), targets, 1.0, with_entropy=False)
    calls, product = [], head.product
    monkeypatch.setattr(head, "product", lambda *both: calls.append(1) or product(*both))
    logprobs.sum().backward()
    assert len(calls) == products


def test_chunks_of_wide_vocabularies_are_short(monkeypatch):
    monkeypatch.setitem(head.CHUNK_BYTES, "cpu", 4 * 1000 * 5)
    assert [rows.stop - rows.start for rows in head._chunks(torch.ones(10, 2), 1000)] == [5, 5]
    assert [rows.stop - rows.start for rows in head._chunks(torch.ones(2, 2), 10**6)] == [1, 1]
