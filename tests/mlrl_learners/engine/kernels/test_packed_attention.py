import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from mlrl_learners.engine import logprobs as logprobs_module
from mlrl_learners.engine.kernels import packed_attention
from mlrl_learners.engine.kernels.packed_attention import (
    attend_in_packs,
    can_attend_in_packs,
    grid_of,
)
from mlrl_learners.engine.logprobs import TokenRow, _pack_mask, completion_logprobs
from mlrl_learners.policies import tiny_model

# A prompt's length, and those of the completions behind it.
packs = st.lists(
    st.tuples(st.integers(1, 5), st.lists(st.integers(0, 4), min_size=1, max_size=4)),
    min_size=1,
    max_size=4,
)


def segments_of(lengths):
    lines = [
        [0] * prompt + [n for n, length in enumerate(own, start=1) for _ in range(length)]
        for prompt, own in lengths
    ]
    width = max(map(len, lines))
    return torch.tensor([line + [-1] * (width - len(line)) for line in lines])


def masked(query, key, value, segments):
    key, value = (states.repeat_interleave(2, 1) for states in (key, value))
    mask = _pack_mask(segments)
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=0.5).transpose(
        1, 2
    )


def grouped(query, key, value, segments):
    module = nn.Module()
    module.num_key_value_groups = 2
    token = packed_attention._GRID.set(grid_of(segments))
    try:
        return packed_attention._attend(module, query, key, value, None, scaling=0.5)[0]
    finally:
        packed_attention._GRID.reset(token)


@given(packs, st.integers(0, 99))
def test_output_and_gradients_equal_masked_attention_over_whole_packs(lengths, seed):
    segments = segments_of(lengths)
    generator = torch.Generator().manual_seed(seed)
    results = []
    states = [torch.randn(*segments.shape, heads, 4, generator=generator) for heads in (4, 2, 2)]
    wanted = torch.randn(*segments.shape, 4, 4, generator=generator)
    for function in (grouped, masked):
        inputs = [each.transpose(1, 2).clone().requires_grad_() for each in states]
        out = function(*inputs, segments)
        is_token = (segments >= 0)[..., None, None]
        (out * wanted * is_token).sum().backward()
        results.append((out.detach() * is_token, *(each.grad for each in inputs)))
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_the_model_attends_in_packs_and_then_as_before():
    model, _ = tiny_model(0)
    decoder = model.get_decoder()
    assert can_attend_in_packs(decoder)
    with attend_in_packs(decoder, grid_of(segments_of([(2, [1, 1])]))):
        assert decoder.config._attn_implementation == "mlrl_packs"
    assert decoder.config._attn_implementation == "sdpa"


def test_packs_are_read_without_a_mask(monkeypatch):
    def no_mask(_):
        raise AssertionError("a mask over the whole pack was made")

    monkeypatch.setattr(logprobs_module, "_pack_mask", no_mask)
    model, _ = tiny_model(0)
    rows = [TokenRow([1, 2, 3], [4, 5]), TokenRow([1, 2, 3], [6, 7, 8])]
    assert len(completion_logprobs(model, rows)[0]) == 5


def test_long_prompts_of_short_answers_keep_the_mask(monkeypatch):
    def no_grid(*_):
        raise AssertionError("a prompt was copied for each of its short answers")

    monkeypatch.setattr(logprobs_module, "attend_in_packs", no_grid)
    model, _ = tiny_model(0)
    rows = [TokenRow(list(range(1, 60)), [4, 5])] * 9
    assert len(completion_logprobs(model, rows)[0]) == 18


def test_gradient_checkpointing_keeps_the_mask():
    model, _ = tiny_model(0)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    assert not can_attend_in_packs(model.train().get_decoder())
    assert can_attend_in_packs(model.eval().get_decoder())


def test_what_a_family_asks_of_attention_and_is_unknown_is_refused():
    model, _ = tiny_model(0)
    layer = model.get_decoder().layers[0].self_attn
    states = torch.randn(1, 4, 3, 8)
    with pytest.raises(ValueError, match="does not support softcap"):
        packed_attention._attend(layer, states, states, states, None, softcap=30.0)


def test_under_autocast_float32_attends_to_what_bfloat16_would(monkeypatch):
    segments = segments_of([(5, [4, 3]), (2, [6])])
    states = [torch.randn(*segments.shape, heads, 4).transpose(1, 2) for heads in (4, 2, 2)]
    seen, attend = [], packed_attention.scaled_dot_product_attention
    monkeypatch.setattr(
        packed_attention,
        "scaled_dot_product_attention",
        lambda *states, **options: seen.extend(states) or attend(*states, **options),
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = grouped(*states, segments)
        theirs = masked(*states, segments)
    assert {each.dtype for each in seen} == {torch.float32}
    assert all(torch.equal(each, each.bfloat16().float()) for each in seen)
    assert ours.dtype == theirs.dtype == torch.bfloat16
    is_token = segments >= 0
    assert torch.allclose(ours[is_token].float(), theirs[is_token].float(), atol=0.02)
