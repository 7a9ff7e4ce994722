from mlrl_envs.rewards.prose.word_cache import MAX_WORD_CHARS, MAX_WORDS, WordCache


def test_a_word_is_judged_once():
    judged = []
    sizes = WordCache(lambda word: judged.append(word) or len(word))
    assert [sizes["fox"], sizes["fox"], sizes["owls"]] == [3, 3, 4]
    assert judged == ["fox", "owls"]


def test_no_more_is_kept_than_fits():
    sizes = WordCache(len)
    assert sizes["x" * (MAX_WORD_CHARS + 1)] == MAX_WORD_CHARS + 1
    assert not sizes
    for number in range(MAX_WORDS + 1):
        assert sizes[str(number)] == len(str(number))
    assert len(sizes) == 1
