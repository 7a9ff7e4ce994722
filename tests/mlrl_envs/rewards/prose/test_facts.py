import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlrl_envs
from mlrl_envs.rewards.prose.facts import facts_score, unsupported_facts
from mlrl_envs.rewards.prose.words import MAX_CHARS

ANY_TEXT = st.text(st.characters(exclude_categories=()))
# Pieces of numbers and names, which texts of single characters seldom hold.
WORDS = (
    "two twenty hundred thousand million and 1,234 1,2345 3.50 20% $20 20s 5'7 3:30 3rd 10k [24M] "
    "'90s half O'Neil Mr. Smith NASA iPhone may May 4/16 \u00bd \u0663 \u0130 . ! - \u2019 weeks"
)
PIECES = st.lists(st.sampled_from(WORDS.split()))
SOURCE = (
    "TITLE: My [24F] boyfriend [26M] of 3 years moved to Canada.\n\n"
    "POST: We met on 4/16 in 2011. He has earned $1,987 since Jan, 35% of it at Tim Hortons. We "
    "talk twice a week, for three months now, and about an hour and a half each time. The home "
    "owners association asks for 10k. On You Tube I saw the pH of soap."
)


def facts(text, source=SOURCE):
    return unsupported_facts(text, source)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("We waited for 23 days.", "It took twenty-three days."),
        ("We waited for twenty-three days.", "It took 23 days."),
        ("It took twenty three days.", "23 days"),
        ("They want 250 dollars.", "They want two hundred and fifty dollars."),
        ("They want $10k.", "They want ten thousand dollars."),
        ("They want 10,000 dollars.", "They want $10K."),
        ("A town of 2.5 million.", "A town of 2,500,000."),
        ("She is 4 today.", "It is her fourth birthday."),
        ("We meet 2 times a week.", "We meet twice a week."),
        ("It has three-fold symmetry.", "3 sides"),
    ],
)
def test_a_number_word_supports_its_digits(text, source):
    assert facts(text, source) == []


@pytest.mark.parametrize(
    "text",
    [
        "She is in her 20s.",
        "She is in her twenties.",
        "He has about $2,000.",
        "He has nearly 2000 dollars.",
        "They met in the 2010s.",
        "They have talked for two or three months.",
        "They talk for 1.5 hours.",
        "They talk for 30 minutes.",
        "A couple of 24 and 26, 3 years together.",
    ],
)
def test_roundings_decades_and_ages_of_the_source_are_supported(text):
    assert facts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "One of us has to go, for one reason.",
        "First, we call. Second, we wait. Third, we talk once more.",
        "I have told her a million times, a dozen friends and a hundred more.",
        "There are two reasons, and a couple of others.",
        "We do both in half the time.",
    ],
)
def test_idioms_are_no_numbers(text):
    assert facts(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("They talk three times a week.", ["three"]),
        ("They talk five times a week and 45 minutes each time.", ["five", "45"]),
        ("He owes 70% of it.", ["70"]),
        ("He owes forty-five thousand dollars.", ["forty-five thousand"]),
        ("He is in his 40s and 6'2.", ["40s", "6"]),
        ("They married in September 2017.", ["September", "2017"]),
        ("they met on a friday in july", ["friday", "july"]),
        ("Later Sarah went to Germany, and Sarah called Germany home.", ["Sarah", "Germany"]),
        ("Then Mr. Miller bought an iPad.", ["Miller", "iPad"]),
        ("He works for NASA.", ["NASA"]),
    ],
)
def test_numbers_and_names_that_the_source_lacks_are_found_in_order(text, found):
    assert facts(text) == found


def test_a_number_is_supported_only_with_its_unit_or_without_one():
    assert facts("We meet three times a week.", "It lasted three months.") == ["three"]
    assert facts("We met three months ago.", "It lasted three months.") == []
    assert facts("She is 29 years old.", "My wife [29F]") == []


@pytest.mark.parametrize(
    "text",
    [
        "He is a Canadian, since January, who met her in April.",
        "Hortons' coffee is what he sells.",
        "He fights with the HOA over YouTube.",
        "TL;DR: OP asks Reddit what I'm to do, and Mom agrees.",
        'He left. Nobody knows why: "Money" is what he said.\nPerhaps it was love.',
        "This is SO VERY UNFAIR and it hurts.",
        "My Boyfriend Moved Away And Never Calls Me",
        "a text in small letters has no names, not even sarah",
    ],
)
def test_known_names_conventions_and_capitals_without_a_name_are_supported(text):
    assert facts(text) == []


def test_a_text_made_of_sentences_of_its_source_has_no_unsupported_facts():
    for name in ("tldr", "arxiv"):
        for task in mlrl_envs.make(f"mlrl/{name}-v1", split="sample").family.tasks:
            sentences = task.source.replace("\n", ". ").split(". ")
            assert facts(". ".join(reversed(sentences)), task.source) == []


@given(ANY_TEXT | PIECES.map(" ".join) | PIECES.map("".join))
def test_every_text_supports_itself(text):
    assert facts(text, text) == []
    assert facts_score(text, text, forgiven=0.0) == 1.0


@given(*[ANY_TEXT | PIECES.map(" ".join) | PIECES.map("".join)] * 2, st.floats(0, 5))
def test_any_text_has_a_score_between_nothing_and_all(text, source, forgiven):
    assert 0.0 <= facts_score(text, source, forgiven=forgiven) <= 1.0


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    [
        "9",
        "9,",
        "1,111",
        "1,111,",
        "9.9",
        "Aa ",
        "AB ",
        "hundred ",
        "nine thousand and ",
        "'",
        "1s",
    ],
)
def test_long_texts_are_read_in_little_time(piece):
    text = piece * (50 * MAX_CHARS // len(piece))
    facts_score(text, SOURCE, forgiven=0.5)


@pytest.mark.parametrize(
    ("text", "source", "found"),
    [
        ("1. We met.\n2. We left.\n3) We spoke.", "Nothing is counted.", []),
        ("We met in October.", "We drove 3.5 hours and waited 10-12 minutes.", ["October"]),
        ("We met in October.", "We met on 10/14.", []),
        ("He is called Michael.", "We live in Michigan.", ["Michael"]),
        ("It is on the Twenty-Third.", "It is on the 23rd.", []),
    ],
)
def test_items_of_lists_durations_and_similar_words_are_no_facts(text, source, found):
    assert unsupported_facts(text, source) == found


def test_one_invented_fact_in_a_short_text_costs_about_half():
    text = "My boyfriend moved to Canada, and we talk only {} a week, so I wonder what to do next."
    scores = [
        facts_score(text.format(often), SOURCE, forgiven=0.5) for often in ("twice", "five times")
    ]
    assert scores[0] == 1.0
    assert 0.45 < scores[1] < 0.6


def test_a_repeated_fact_counts_once_and_each_new_one_halves_the_score():
    assert facts("They met in Paris. She loves Paris, he loves Rome.") == ["Paris", "Rome"]
    assert facts_score("He saw Paris, and Paris.", SOURCE, forgiven=0.0) == 0.5
    assert facts_score("He saw Paris, and Rome.", SOURCE, forgiven=0.0) == 0.25


def test_longer_texts_may_have_more_facts_of_their_own():
    text = "We went to Paris. " + "And then we went on as we had before. " * 20
    assert facts_score(text, SOURCE, forgiven=0.1) < facts_score(text, SOURCE, forgiven=0.5) < 1.0
