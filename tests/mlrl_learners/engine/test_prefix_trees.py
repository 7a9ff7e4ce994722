import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.engine import TokenRow
from mlrl_learners.engine.prefix_trees import BRANCH_TOKENS, prefix_trees

# Few different tokens, so that rows share prefixes of all lengths.
row_lists = st.lists(
    st.builds(
        lambda stem, prompt, answer: TokenRow([0] * stem + prompt, answer),
        st.sampled_from([0, 1, BRANCH_TOKENS, 2 * BRANCH_TOKENS + 3]),
        st.lists(st.integers(0, 1), min_size=1, max_size=5),
        st.lists(st.integers(0, 1), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=12,
)


@given(row_lists)
def test_the_path_to_each_source_holds_the_tokens_of_the_row(rows):
    trees = prefix_trees(rows)
    mask = trees.mask()
    for row, sources in zip(rows, trees.sources, strict=True):
        assert len(sources) == len(row.token_ids)
        for count, source in enumerate(sources):
            path = np.flatnonzero(mask[source])
            expected = [*row.prompt_ids, *row.token_ids[:count]]
            assert trees.token_ids[path].tolist() == expected
            assert trees.positions[path].tolist() == list(range(len(expected)))
            assert path[-1] == source


@given(row_lists)
def test_segments_are_in_depth_first_order(rows):
    trees = prefix_trees(rows)
    assert [0, *trees.ends[:-1]] == list(trees.starts)
    assert trees.ends[-1] == len(trees.token_ids)
    for segment, parent in enumerate(trees.parents):
        assert parent < segment
        assert trees.starts[segment] < trees.ends[segment]
        if parent >= 0:
            assert trees.subtree_ends[segment] <= trees.subtree_ends[parent]
            assert trees.starts[segment] >= trees.ends[parent]


@given(row_lists)
def test_equal_prompts_are_read_once(rows):
    prompts = {tuple(row.prompt_ids) for row in rows}
    most = sum(map(len, prompts)) + sum(len(row.token_ids) - 1 for row in rows)
    assert len(prefix_trees(rows).token_ids) <= most


def test_a_later_turn_goes_on_where_the_prompt_before_it_ended():
    first = TokenRow(list(range(50)), [1, 2, 3])
    later = TokenRow([*range(50), 7, 8], [4, 5])
    trees = prefix_trees([first, later, first])
    assert list(zip(trees.starts, trees.ends, trees.parents, strict=True)) == [
        (0, 50, -1),
        (50, 52, 0),
        (52, 55, 0),
    ]
    assert trees.positions.tolist() == [*range(50), 50, 51, 50, 51, 52]


def test_a_short_chance_agreement_makes_no_branch():
    rows = [TokenRow([1, 2, 3, 4], [5]), TokenRow([1, 2, 3, 5], [5])]
    assert prefix_trees(rows).parents == [-1, -1]


def test_long_agreements_of_prompts_branch_at_a_multiple_of_some_tokens():
    same = [9] * (BRANCH_TOKENS + 5)
    trees = prefix_trees([TokenRow([*same, 1], [5]), TokenRow([*same, 2], [5])])
    assert trees.parents == [-1, 0, 0]
    assert trees.ends[0] == BRANCH_TOKENS
