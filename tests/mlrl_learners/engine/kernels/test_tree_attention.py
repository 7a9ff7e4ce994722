import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from mlrl_learners.engine import TokenRow
from mlrl_learners.engine import logprobs as logprobs_module
from mlrl_learners.engine.kernels import tree_attention
from mlrl_learners.engine.kernels.tree_attention import attend_in_trees, can_attend_in_trees
from mlrl_learners.engine.kernels.tree_blocks import tree_blocks
from mlrl_learners.engine.logprobs import completion_logprobs
from mlrl_learners.engine.prefix_trees import BRANCH_TOKENS, prefix_trees
from mlrl_learners.policies import tiny_model

# Rows whose prompts begin with stems of all kinds of lengths.
row_lists = st.lists(
    st.builds(
        lambda stem, prompt, answer, length: TokenRow([0] * stem + prompt, [answer] * length),
        st.sampled_from([0, 3, BRANCH_TOKENS, 3 * BRANCH_TOKENS]),
        st.lists(st.integers(0, 1), min_size=1, max_size=3),
        st.integers(0, 3),
        st.sampled_from([1, 2, 5, 70]),
    ),
    min_size=1,
    max_size=10,
)


def masked(query, key, value, trees):
    key, value = (states.repeat_interleave(2, 1) for states in (key, value))
    mask = torch.from_numpy(trees.mask())
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=0.5).transpose(
        1, 2
    )


def in_blocks(query, key, value, trees):
    module = nn.Module()
    module.num_key_value_groups = 2
    token = tree_attention._BLOCKS.set(tree_blocks(trees))
    try:
        return tree_attention._attend(module, query, key, value, None, scaling=0.5)[0]
    finally:
        tree_attention._BLOCKS.reset(token)


def states_of(trees, seed=0):
    generator = torch.Generator().manual_seed(seed)
    size = len(trees.token_ids)
    return [torch.randn(1, heads, size, 4, generator=generator) for heads in (4, 2, 2)]


@given(row_lists, st.integers(0, 99))
def test_output_and_gradients_equal_masked_attention_over_whole_trees(rows, seed):
    trees = prefix_trees(rows)
    states = states_of(trees, seed)
    wanted = torch.randn(states[0].transpose(1, 2).shape)
    results = []
    for function in (in_blocks, masked):
        inputs = [each.clone().requires_grad_() for each in states]
        out = function(*inputs, trees)
        (out * wanted).sum().backward()
        results.append((out.detach(), *(each.grad for each in inputs)))
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)


@given(row_lists)
def test_every_token_is_in_one_cell(rows):
    trees = prefix_trees(rows)
    blocks = tree_blocks(trees)
    assert blocks.cells[blocks.places].tolist() == list(range(len(trees.token_ids)))
    assert blocks.is_cell.sum() == len(trees.token_ids)


def conversation(turns, added, answer):
    prompt, rows = [1] * added, []
    for turn in range(turns):
        rows.append(TokenRow(prompt, [2 + turn] * answer))
        prompt = [*prompt, *[2 + turn] * answer, *[1] * added]
    return rows


@pytest.mark.parametrize(("added", "answer"), [(20, 10), (10, 5), (1, 1), (60, 40)])
def test_keys_are_copied_a_few_times_in_long_conversations(added, answer):
    trees = prefix_trees(conversation(60, added, answer))
    assert tree_blocks(trees).num_keys <= 5 * len(trees.token_ids)
    states = states_of(trees)
    assert torch.allclose(in_blocks(*states, trees), masked(*states, trees), atol=1e-4)


def test_blocks_of_many_tasks_attend_in_few_calls():
    rows = [
        TokenRow([task] * (80 + 5 * task), [100 + sample] * (5 + 36 * sample))
        for task in range(64)
        for sample in range(4)
    ]
    assert len(tree_blocks(prefix_trees(rows)).batches) <= 12


@pytest.mark.parametrize("answer", [2, 40, 300])
@pytest.mark.parametrize("branch", [3, 100])
@pytest.mark.parametrize("stem", [40, 1000])
def test_keys_are_copied_a_few_times_whatever_the_lengths(stem, branch, answer):
    rows = [
        TokenRow([1] * stem + [2 + turn] * branch, [40 + sample] * answer)
        for turn in range(20)
        for sample in range(4)
    ]
    trees = prefix_trees(rows)
    assert tree_blocks(trees).num_keys <= 5 * len(trees.token_ids)


def test_the_model_attends_in_trees_and_then_as_before():
    model, _ = tiny_model(0)
    decoder = model.get_decoder()
    assert can_attend_in_trees(decoder)
    with attend_in_trees(decoder, tree_blocks(prefix_trees([TokenRow([1], [2])]))):
        assert decoder.config._attn_implementation == "mlrl_trees"
    assert decoder.config._attn_implementation == "sdpa"


def test_trees_are_read_without_a_mask(monkeypatch):
    def no_mask(_):
        raise AssertionError("a mask over the whole trees was made")

    monkeypatch.setattr(logprobs_module, "_mask", no_mask)
    model, _ = tiny_model(0)
    rows = [TokenRow([1, 2, 3], [4, 5]), TokenRow([1, 2, 3], [6, 7, 8])]
    assert len(completion_logprobs(model, rows)[0]) == 5


def test_gradient_checkpointing_keeps_the_mask():
    model, _ = tiny_model(0)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    assert not can_attend_in_trees(model.get_decoder())


def test_what_a_family_asks_of_attention_and_is_unknown_is_refused():
    model, _ = tiny_model(0)
    layer = model.get_decoder().layers[0].self_attn
    states = torch.randn(1, 4, 3, 8)
    with pytest.raises(ValueError, match="does not support softcap"):
        tree_attention._attend(layer, states, states, states, None, softcap=30.0)


def test_under_autocast_float32_attends_to_what_bfloat16_would(monkeypatch):
    trees = prefix_trees([TokenRow([1] * 5, [2] * 4), TokenRow([1] * 5, [3] * 9)])
    states = states_of(trees)
    seen, attend = [], tree_attention.scaled_dot_product_attention
    monkeypatch.setattr(
        tree_attention,
        "scaled_dot_product_attention",
        lambda *states, **options: seen.extend(states) or attend(*states, **options),
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = in_blocks(*states, trees)
        theirs = masked(*states, trees)
    assert {each.dtype for each in seen} == {torch.float32}
    assert all(torch.equal(each, each.bfloat16().float()) for each in seen)
    assert ours.dtype == theirs.dtype == torch.bfloat16
    assert torch.allclose(ours.float(), theirs.float(), atol=0.02)
