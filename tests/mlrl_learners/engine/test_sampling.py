import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlrl_learners.engine.sampling import SamplingConfig, draw_tokens, greedy_tokens
from mlrl_learners.errors import ConfigError

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
    token, *_ = draw_tokens(logits[None], torch.tensor([uniform]), config)
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
    tokens, *_ = draw_tokens(logits.repeat(20_000, 1), uniforms, config)
    shares = torch.bincount(tokens, minlength=4) / 20_000
    expected = [0.5, 0.25, 0.15, 0.1] if top_p == 1 else [2 / 3, 1 / 3, 0, 0]
    assert shares.tolist() == pytest.approx(expected, abs=0.02)


TRUNCATIONS = [{"top_p": 0.6}, {"top_p": 0.999}, {"top_k": 5}, {"top_p": 0.9, "top_k": 300}]


def nuclei_of(draw, num_rows):
    """The set of ids each row was drawn from, in the rows' order."""
    found = {}
    for rows, candidates, sizes in draw.nuclei:
        for row, ids, size in zip(rows.tolist(), candidates.tolist(), sizes.tolist(), strict=True):
            if size:
                assert row not in found  # every row has exactly one
                found[row] = ids[:size]
    return [found[row] for row in range(num_rows)]


@pytest.mark.parametrize("options", TRUNCATIONS)
def test_logprobs_are_of_the_nucleus_that_was_drawn_from(options):
    config = SamplingConfig(temperature=0.7, **options)
    logits = torch.stack([logits_of(seed, spread) for seed, spread in ((1, 2.0), (2, 0.1), (3, 9))])
    draw = draw_tokens(logits, torch.tensor([0.4, 0.7, 0.2]), config)
    for row, ids in enumerate(nuclei_of(draw, 3)):
        tokens, probs = slow_nucleus(logits[row], config)
        assert ids == tokens.tolist()
        drawn = tokens.tolist().index(int(draw.tokens[row]))
        assert float(draw.logprobs[row]) == pytest.approx(float(probs[drawn].log()), abs=1e-5)
        mass = torch.softmax(logits[row].double() / 0.7, -1)[tokens].sum()
        assert float(draw.log_masses[row]) == pytest.approx(float(mass.log()), abs=1e-5)


@pytest.mark.parametrize("draw", ["not renormalized", "not truncated", "greedy"])
def test_logprobs_without_a_nucleus_are_of_the_whole_distribution(draw):
    logits = logits_of(1, 2.0)[None]
    config = SamplingConfig(temperature=0.7, top_p=0.3, renormalize=draw == "greedy")
    if draw == "not truncated":
        config = SamplingConfig(temperature=0.7, top_p=1.0)
    if draw == "greedy":
        found = greedy_tokens(logits, config)
        assert int(found.tokens) == int(logits.argmax())
    else:
        found = draw_tokens(logits, torch.tensor([0.4]), config)
    expected = torch.log_softmax(logits[0] / 0.7, -1)[found.tokens]
    assert torch.allclose(found.logprobs, expected, atol=1e-5)
    assert found.log_masses is None
    assert found.nuclei == ()


def test_a_nucleus_of_one_token_is_certain():
    draw = draw_tokens(logits_of(1, 9.0)[None], torch.tensor([0.9]), SamplingConfig(top_p=0.01))
    assert nuclei_of(draw, 1) == [draw.tokens.tolist()]
    assert draw.logprobs.tolist() == [0.0]


LARGEST_UNIFORM = 1 - 2**-24


@pytest.mark.parametrize("last", [-torch.inf, -60.0])
@pytest.mark.parametrize(
    "options", [{"top_p": 1.0}, {"top_p": 0.9999999}, {"top_p": 1.0, "top_k": 650}]
)
def test_the_largest_uniform_number_draws_a_token_that_has_mass(last, options):
    """Rounded probabilities add up to less than 1: what is above their sum is not the last id."""
    config = SamplingConfig(temperature=1.0, **options)
    for seed in range(40):
        logits = logits_of(seed, 1.0)
        logits[600:] = last
        token, *_ = draw_tokens(logits[None], torch.tensor([LARGEST_UNIFORM]), config)
        assert int(token) < 600


def test_an_option_that_means_nothing_is_an_error():
    with pytest.raises(ConfigError, match=r"renormalize false .* with top_p 1 and top_k 0"):
        SamplingConfig(top_p=1.0, renormalize=False)
    SamplingConfig(top_p=1.0, top_k=4, renormalize=False)


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
    for place in range(3):
        assert torch.equal(together[place], torch.cat([one[place] for one in alone]))
    assert nuclei_of(together, 4) == [nuclei_of(one, 1)[0] for one in alone]
