import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlrl_learners.errors import ConfigError
from mlrl_learners.policies.sampling import SamplingConfig, draw_tokens, greedy_tokens

VOCABULARY = 700


def slow_nucleus(logits, config):
    """Sort everything: tokens, likeliest first, and their renormalised probabilities."""
    probs = torch.softmax(logits.double() / config.temperature, -1)
    probs, tokens = probs.sort(descending=True)
    if config.top_k:
        probs, tokens = probs[: config.top_k], tokens[: config.top_k]
        probs = probs / probs.sum()
    before = probs.cumsum(-1) - probs
    kept = before < config.top_p
    return tokens[kept], probs[kept] / probs[kept].sum()


def logits_of(seed, spread):
    return torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(seed)) * spread


@settings(max_examples=60)
@example(seed=0, spread=1.0, top_p=0.1, top_k=300, temperature=1.0, uniform=0.5)
@given(
    seed=st.integers(0, 10_000),
    spread=st.sampled_from([0.01, 1.0, 4.0]),
    top_p=st.sampled_from([0.1, 0.5, 0.9, 0.999, 1.0]),
    top_k=st.sampled_from([0, 1, 5, 300]),
    temperature=st.sampled_from([0.5, 1.0, 1.7]),
    uniform=st.floats(0, 1, exclude_max=True),
)
def test_a_draw_inverts_the_sorted_nucleus(seed, spread, top_p, top_k, temperature, uniform):
    config = SamplingConfig(temperature=temperature, top_p=top_p, top_k=top_k)
    logits = logits_of(seed, spread)
    tokens, probs = slow_nucleus(logits, config)
    token, _ = draw_tokens(logits[None], torch.tensor([uniform]), config)
    assert int(token) in tokens.tolist()
    if top_p < 1 or top_k:  # the plain path counts in the vocabulary's order
        place = int((tokens == token).nonzero())
        edges = torch.cat([torch.zeros(1, dtype=torch.double), probs.cumsum(-1)])
        assert edges[place] - 1e-5 <= uniform <= edges[place + 1] + 1e-5


@pytest.mark.parametrize("top_p", [0.6, 1.0])
def test_draws_follow_the_distribution(top_p):
    logits = torch.log(torch.tensor([0.5, 0.25, 0.15, 0.1]))
    config = SamplingConfig(temperature=1.0, top_p=top_p)
    uniforms = torch.rand(20_000, generator=torch.Generator().manual_seed(0))
    tokens, _ = draw_tokens(logits.repeat(20_000, 1), uniforms, config)
    shares = torch.bincount(tokens, minlength=4) / 20_000
    expected = [0.5, 0.25, 0.15, 0.1] if top_p == 1 else [2 / 3, 1 / 3, 0, 0]
    assert shares.tolist() == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("draw", ["sampled", "greedy"])
def test_logprobs_are_of_the_whole_distribution_at_the_temperature(draw):
    logits = logits_of(1, 2.0)[None]
    config = SamplingConfig(temperature=0.7, top_p=0.3)
    if draw == "greedy":
        token, logprob = greedy_tokens(logits, config)
        assert int(token) == int(logits.argmax())
    else:
        token, logprob = draw_tokens(logits, torch.tensor([0.4]), config)
    expected = torch.log_softmax(logits[0] / 0.7, -1)[token]
    assert torch.allclose(logprob, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("field", "value"),
    [("max_new_tokens", 0), ("temperature", 0.0), ("top_p", 0.0), ("top_p", 1.1), ("top_k", -1)],
)
def test_a_value_outside_its_range_is_named(field, value):
    with pytest.raises(ConfigError, match=f"{field} must be .*{value}"):
        SamplingConfig(**{field: value})


@given(seed=st.integers(0, 2**31), top_p=st.sampled_from([0.5, 0.95, 0.999]))
def test_a_flat_row_changes_nothing_for_the_peaked_ones_beside_it(seed, top_p):
    generator = torch.Generator().manual_seed(seed)
    sharpness = torch.tensor([0.0, 8.0, 1.0, 30.0])[:, None]  # needs all candidates, few, many, one
    logits = torch.randn(4, 700, generator=generator) * sharpness
    uniforms = torch.rand(4, generator=generator)
    config = SamplingConfig(temperature=1.0, top_p=top_p)
    together = draw_tokens(logits, uniforms, config)
    alone = [draw_tokens(logits[i : i + 1], uniforms[i : i + 1], config) for i in range(4)]
    for place, results in enumerate(together):
        assert torch.equal(results, torch.cat([one[place] for one in alone]))
