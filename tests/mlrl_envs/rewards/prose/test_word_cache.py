from mlrl_envs.rewards.prose.word_cache import LONGEST_KEPT, MAX_KEPT, Kept


def test_a_word_is_judged_once():
    judged = []
    sizes = Kept(lambda word: judged.append(word) or len(word))
    assert [sizes["fox"], sizes["fox"], sizes["owls"]] == [3, 3, 4]
    assert judged == ["fox", "owls"]


def test_no_more_is_kept_than_fits():
    sizes = Kept(len)
    assert sizes["x" * (LONGEST_KEPT + 1)] == LONGEST_KEPT + 1
    assert not sizes
    for number in range(MAX_KEPT + 1):
        assert sizes[str(number)] == len(str(number))
    assert len(sizes) == 1
