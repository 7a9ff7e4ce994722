import torch
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.engine.shared_prompts import MIN_SAVED, shared_prompts


def padded(prompts):
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    return ids, mask


@given(
    st.lists(
        st.builds(
            lambda first, length, rest: [first] * length + rest,
            st.integers(1, 2),
            st.integers(40, 50),
            st.lists(st.integers(1, 2), min_size=1, max_size=8),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_columns_hold_the_tokens_of_each_prompt_at_their_positions(prompts):
    ids, mask = padded(prompts)
    shared = shared_prompts(ids, mask)
    if shared is None:
        return
    assert shared.stem_ids.numel() + shared.rest_ids.numel() <= (1 - MIN_SAVED) * ids.numel()
    tokens = torch.cat([shared.stem_ids[shared.stems], shared.rest_ids], 1)
    positions = torch.cat([shared.stem_positions[shared.stems], shared.rest_positions], 1)
    assert torch.equal(tokens.gather(1, shared.columns) * mask, ids)
    assert torch.equal(shared.mask.sum(1), mask.sum(1))
    for row, prompt in enumerate(prompts):
        own = shared.columns[row, ids.shape[1] - len(prompt) :]
        assert shared.mask[row, own].all()
        assert positions[row, own].tolist() == list(range(len(prompt)))


def test_prompts_without_a_long_common_beginning_are_read_as_they_are():
    assert shared_prompts(*padded([[1] * 60, [2] * 60])) is None
    assert shared_prompts(*padded([[1, 2, 3], [1, 2, 4]])) is None


def test_a_group_of_later_turns_is_read_from_one_stem():
    shared = shared_prompts(*padded([[1] * 60 + [turn, 9] for turn in range(2, 6)]))
    assert shared.stem_ids.shape == (1, 60)
    assert shared.rest_ids.shape == (4, 2)
