import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.engine import SamplingConfig
from mlrl_learners.engine.decoding_task import DecodingTask, our_batches, prompts_per_batch

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def task_of(lengths, num_samples=3, **options):
    prompts = [[1] * length for length in lengths]
    return DecodingTask(prompts, num_samples, SamplingConfig(max_new_tokens=5), [0], **options)


def batches_of(task, rank, size, *, cut_first=True):
    per_batch = prompts_per_batch(task, is_on_cpu=cut_first)
    with pytest.MonkeyPatch.context() as patch:
        for name, number in zip(NAMES, (rank, size, rank, size), strict=True):
            patch.setenv(name, str(number))
        return our_batches(task, per_batch, cut_first=cut_first)


@given(st.lists(st.integers(1, 30), max_size=80), st.integers(1, 8), st.integers(2, 4))
def test_the_batches_of_a_cpu_are_those_of_one_process_shared_out(lengths, num_samples, size):
    task = task_of(lengths, num_samples, max_rows=16)
    parts = [batches_of(task, rank, size) for rank in range(size)]
    assert sorted(batch for part in parts for batch in part) == sorted(batches_of(task, 0, 1))


@given(st.lists(st.integers(1, 30), max_size=80), st.integers(1, 4), st.booleans())
def test_every_prompt_is_in_one_batch_of_at_most_max_rows(lengths, size, cut_first):
    task = task_of(lengths, max_rows=12)
    batches = [
        batch for rank in range(size) for batch in batches_of(task, rank, size, cut_first=cut_first)
    ]
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert all(len(batch) * task.num_samples <= 12 for batch in batches)


def test_a_cpu_has_a_few_batches_to_share_out_unless_they_are_small():
    sizes = {
        n: prompts_per_batch(task_of([4] * n, 1, max_rows=64), is_on_cpu=True)
        for n in (32, 80, 1000)
    }
    assert sizes == {32: 32, 80: 32, 1000: 64}
    assert prompts_per_batch(task_of([4] * 80, 1, max_rows=64), is_on_cpu=False) == 64
    assert prompts_per_batch(task_of([4] * 4, 100, max_rows=64), is_on_cpu=True) == 1


def test_numbers_depend_on_the_seed_of_the_prompt_alone():
    task = task_of([1, 2, 3], seeds=[7, 8, 9])
    rows = task.uniforms().unflatten(0, (3, 3))
    assert rows.shape == (3, 3, 5)
    assert len(rows.unique()) == 45
    assert torch.equal(task.part([2, 0]).uniforms().unflatten(0, (2, 3)), rows[[2, 0]])
    assert torch.equal(task_of([5], 1, seeds=[8]).uniforms()[0], rows[1, 0])
    assert task_of([1]).uniforms() is None
