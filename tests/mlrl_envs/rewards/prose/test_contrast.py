import time

from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.datasets.tldr import load_tldr
from mlrl_envs.rewards.prose import Contrast, coherence, contrast_of, copied_share, coverage

SOURCES = (
    "The goat broke through the fence and ate the tomatoes of the gardener.",
    "A comet is visible from the harbour every seventy years.",
    "The orchestra rehearsed the symphony without its conductor.",
)
CONTRAST = Contrast(SOURCES)
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def test_a_text_is_about_its_own_source():
    text = "A goat went through my fence, and now all the tomatoes are gone."
    found = [CONTRAST.relevance(text, source, wanted=1.0) for source in SOURCES]
    assert found[0] == 1.0
    assert found[1] == found[2] == 0.0


def test_one_text_for_all_sources_is_about_none():
    text = " ".join(SOURCES)
    assert max(CONTRAST.relevance(text, source, wanted=1.0) for source in SOURCES) < 0.4


def test_one_sentence_about_the_source_counts_for_its_share_only():
    filler = "It is a fine thing to write, and I hope that everyone will like it very much. " * 6
    text = filler + SOURCES[1]
    assert CONTRAST.relevance(text, SOURCES[1], wanted=1.0) < 0.3


def test_a_source_outside_of_the_split_is_compared_too():
    source = "A whale swam up the river as far as the bridge."
    assert CONTRAST.relevance("The whale reached the bridge.", source, wanted=1.0) == 1.0


def test_others_do_not_depend_on_the_order_of_the_split():
    text = "The goat ate every tomato."
    turned = Contrast(SOURCES[::-1])
    assert turned.relevance(text, SOURCES[0], wanted=2.0) == CONTRAST.relevance(
        text, SOURCES[0], wanted=2.0
    )


def test_letters_of_another_script_are_unknown_words():
    disguised = "The g\u043eat br\u043eke the fenc\u0435 and ate the t\u043emat\u043ees."
    assert coverage(disguised, SOURCES[0]) < coverage("The goat ate the tomatoes.", SOURCES[0])


def test_words_of_the_source_in_random_order_are_not_coherent():
    source = load_tldr("sample")[0].source
    words = source.split()
    mixed = " ".join(words[place * 37 % len(words)] for place in range(100))
    assert coherence(" ".join(words[:100]), source) > coherence(mixed, source) + 0.1


def test_copied_runs_are_counted():
    assert copied_share(SOURCES[0], SOURCES[0]) == 1.0
    assert copied_share(SOURCES[0], SOURCES[1]) == 0.0


def test_contrast_of_a_split_is_computed_once():
    assert contrast_of(SOURCES) is contrast_of(tuple(SOURCES))


def test_a_text_is_compared_within_two_milliseconds():
    tasks = load_tldr("sample")
    contrast = contrast_of(tuple(task.source for task in tasks))
    contrast.relevance("warm", tasks[0].source, wanted=1.0)
    texts = [f"{task.source[:900]} {number}" for number in range(5) for task in tasks]
    start = time.process_time()
    for text in texts:
        contrast.relevance(text, tasks[0].source, wanted=1.0)
    assert (time.process_time() - start) / len(texts) < 0.004


@given(ANY_TEXT, ANY_TEXT)
def test_any_texts_are_in_range(text, source):
    assert 0.0 <= CONTRAST.relevance(text, source, wanted=1.0) <= 1.0
    assert 0.0 <= coverage(text, source) <= 1.0
    assert -1.0 <= coherence(text, source) <= 1.0
    assert 0.0 <= copied_share(text, source) <= 1.0
