import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.engine import TokenRow, micro_batches, num_tokens
from mlrl_learners.engine.batching import prompt_groups

PACKINGS = ("trees", "prompts", "rows")
token_rows = st.builds(
    lambda stem, prompt, answer: TokenRow([0] * stem + prompt, answer),
    st.sampled_from([0, 0, 33, 64]),
    st.lists(st.integers(0, 2), min_size=1, max_size=6),
    st.lists(st.integers(0, 9), min_size=1, max_size=20),
)


@given(rows=st.lists(token_rows, max_size=30), budget=st.integers(1, 120))
@pytest.mark.parametrize("packing", PACKINGS)
def test_micro_batches_hold_every_row_once_within_the_budget(packing, rows, budget):
    batches = list(micro_batches(rows, budget, packing))
    assert sorted(row for batch in batches for row in batch) == list(range(len(rows)))
    for batch in batches:
        assert len(batch) == 1 or num_tokens(rows, batch, packing) <= budget
        if packing != "trees":  # lines are padded
            chosen = [rows[number] for number in batch]
            lines = prompt_groups(chosen) if packing == "prompts" else [[n] for n in batch]
            widths = [num_tokens(chosen, line, packing) for line in lines if packing == "prompts"]
            longest = max(widths or [row.num_tokens for row in chosen])
            assert len(lines) == 1 or len(lines) * longest <= budget


def test_answers_to_one_prompt_share_a_micro_batch_that_reads_it_once():
    rows = [TokenRow((1,) * 50, [2 + number] * 11) for number in range(4)]
    for packing in ("trees", "prompts"):  # 90 tokens, 240 apart
        assert [sorted(batch) for batch in micro_batches(rows, 100, packing)] == [[0, 1, 2, 3]]
    assert len(list(micro_batches(rows, 100, "rows"))) == 4


def test_equal_rows_are_read_once():
    assert num_tokens([TokenRow((1,) * 50, [2] * 11)] * 4, range(4), "trees") == 60


def test_later_turns_share_a_micro_batch_with_the_turn_that_they_continue():
    first = [TokenRow((1,) * 50, [2 + number] * 11) for number in range(3)]
    later = [TokenRow((*((1,) * 50), 9, number), [2] * 5) for number in range(3)]
    assert len(list(micro_batches([*first, *later], 100))) == 1
    assert len(list(micro_batches([*first, *later], 100, "prompts"))) == 4


def test_a_batch_ends_early_between_prompts_rather_than_within_one():
    rows = [TokenRow((prompt,) * 40, [5 + n] * 11) for prompt in (1, 2) for n in range(4)]
    # 80 tokens a prompt: the first answer to the second one would fit, at the cost of its prompt.
    assert [sorted(batch) for batch in micro_batches(rows, 130)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [sorted(batch) for batch in micro_batches(rows, 160)] == [list(range(8))]


def test_a_long_conversation_is_cut_into_full_batches():
    prompt, rows = list(range(300)), []
    for turn in range(20):
        rows.append(TokenRow(prompt, [turn] * 20))
        prompt = [*prompt, *[turn] * 20, *[1000 + turn] * 80]
    batches = list(micro_batches(rows, 2048))
    assert len(batches) <= 6
    assert sum(num_tokens(rows, batch, "trees") for batch in batches) < 11_000
