import random

from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.seeding import CallSeeds, derive_seed, task_indices


def test_each_epoch_has_every_task_once_in_a_new_order():
    drawn = [i for it in range(1, 7) for i in task_indices(9, 3, it, seed=5)]
    assert sorted(drawn[:9]) == sorted(drawn[9:]) == list(range(9))
    assert drawn[:9] != drawn[9:]
    assert drawn == [i for it in range(1, 7) for i in task_indices(9, 3, it, seed=5)]


@given(parts=st.lists(st.integers(0, 50), min_size=3, max_size=3))
def test_a_seed_depends_on_every_part_and_its_place(parts):
    assert derive_seed(*parts) == derive_seed(*parts)
    assert 0 <= derive_seed(*parts) < 2**31
    for place in range(3):
        changed = [*parts[:place], parts[place] + 1, *parts[place + 1 :]]
        assert derive_seed(*changed) != derive_seed(*parts)


def test_every_call_and_prompt_has_a_seed_of_its_own_that_two_numbers_restore():
    seeds = CallSeeds(5)
    first, second = seeds.next(3), seeds.next(3)
    assert len({*first, *second}) == 6
    assert CallSeeds(5).next(2) == first[:2]
    assert CallSeeds(5, calls=1).next(3) == second
    assert CallSeeds(6).next(3) != first


def test_the_order_of_an_epoch_is_shuffled_once(monkeypatch):
    shuffled = []
    shuffle = random.Random.shuffle
    monkeypatch.setattr(
        random.Random, "shuffle", lambda self, order: (shuffled.append(1), shuffle(self, order))
    )
    drawn = [i for it in range(1, 51) for i in task_indices(100, 4, it, seed=12_345)]
    assert [sorted(drawn[:100]), sorted(drawn[100:])] == [list(range(100))] * 2
    assert len(shuffled) == 2
