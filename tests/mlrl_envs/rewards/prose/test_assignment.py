import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlrl_envs
from mlrl_envs.rewards.prose.assignment import assignment_score, assignment_share
from mlrl_envs.rewards.prose.words import MAX_CHARS

ANY_TEXT = st.text(st.characters(exclude_categories=()))
# Pieces of addresses, which texts of single characters seldom hold.
WORDS = "you Your teammate writes prose , : . ? ! \" ' ( \u201c \u201d \u2018"
PIECES = st.lists(st.sampled_from([*WORDS.split(), "\n"]))
INSTRUCTIONS = (
    "Scientific abstract:\n\nTwo writers expand this abstract to the introduction of a paper, at "
    "the same time. You write the methodology and the implications. Your teammate writes the "
    "background and motivation; do not repeat these. Write 180 to 250 words of plain prose in "
    "your own words, and nothing else."
)
SOURCE = (
    "We measure how sand flows through a narrow opening. The flow stops when grains form an arch. "
    "Shaking the vessel breaks the arches. A model of two parameters describes all our data."
)
POST = (
    "My brother borrowed my car. I said you may keep it until Friday. You never know with him. "
    "What would you do?"
)
HONEST = (
    "In this paper we study how sand leaves a vessel. Two forces compete while the grains flow. We "
    "find that arches block the opening and that shaking destroys them. The implications reach "
    "from silos to crowds, and the methodology is open to other materials. What follows is known."
)
EXPLOITS = (
    (
        "Sand flows through an opening until an arch forms. Your colleague writes the background "
        "in your own words. Your edited version keeps the meaning. Your tone is clear and inviting."
    ),
    (
        "You begin with the flow of sand. You then explain why arches form. You also mention "
        "shaking, and finally you describe the model."
    ),
    (
        "The rewritten introduction is condensed to 180 words. The methodology and the "
        "implications are in plain prose. The sentences about sand were rewritten for a "
        "second paragraph."
    ),
    (
        "Finally, you reach the arches. In this version, your text is about sand. I've also added "
        "a sentence that explains what you meant and why your reader should care."
    ),
    (
        "The background and motivation are left to a teammate. The writers expand the abstract to "
        "an introduction without repeating the background. No words are repeated."
    ),
)


def share(text, source=SOURCE, instructions=INSTRUCTIONS, labels=()):
    return assignment_share(text, instructions, source, labels)


def score(text, source=SOURCE):
    return assignment_score(text, INSTRUCTIONS, source)


@pytest.mark.parametrize("text", EXPLOITS, ids=range(len(EXPLOITS)))
def test_texts_about_the_assignment_score_little(text):
    assert score(text) <= 0.1


def test_scientific_prose_is_free():
    assert share(HONEST) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "Sand flows like a crowd that you see at a door.",
        "The network learns to predict the next word of a sentence.",
        "The term can be written in the words of the generators.",
        "I wrote her a long text message to say sorry, and she has not answered.",
        "I sent my girlfriend a text and wrote that I am sorry.",
        "Two of several new and different results follow from known work in time.",
        "The introduction of vibration has implications.",
        "The paper has implications.",
    ],
)
def test_ordinary_sentences_are_free(text):
    assert share(text) == 0.0


def test_quotation_marks_do_not_hide_the_assignment():
    assert score('"Your teammate writes the background." "You write the methods."') == 0.0


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("Your brother has the car.", False),  # the post addresses readers, too
        ("He says that you may keep your car.", False),
        ("You describe how your brother took the car.", False),
        ("Would you lend him your car?", False),
        ("A teammate writes the background of the car in plain prose.", True),
    ],
)
def test_a_source_that_addresses_readers_may_be_retold_so(text, is_found):
    assert share(text, POST) == is_found


def test_a_sentence_to_the_reader_counts_where_the_source_begins_none_so():
    source = "My brother said you may keep my car."
    assert share("You write about your brother and a car.", source) == 1.0
    assert share("My brother says that your car is his.", source) == 0.0


def test_a_question_to_the_reader_is_free_where_the_source_asks():
    question = "What would your advice be?"
    assert share(question, "My brother took my car. Is this normal?") == 0.0
    assert share(question, "My brother took my car.") == 1.0


def test_words_of_the_source_are_no_sign():
    text = "The teammates rewrote a paragraph of prose."
    assert share(text) == 1.0
    assert share(text, "Teammates who rewrite paragraphs read more prose than others.") == 0.0


def test_one_stray_sentence_costs_a_long_text_little():
    stray = f"{HONEST} Your teammate writes the background."
    assert 0.0 < share(stray) < 0.15
    assert score(stray) == 1.0


def test_the_score_falls_with_every_sentence_about_the_assignment():
    about = "Your teammate writes the background and motivation in plain prose. "
    scores = [score(HONEST + " " + about * count) for count in range(6)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 1.0
    assert scores[-1] < 0.1


def test_own_instructions_are_read():
    instructions = "Compose a limerick that praises the municipal aquarium."
    text = "This limerick praises the aquarium."
    assert share(text, instructions=instructions) == 1.0
    assert share(text) == 0.0


FORM = "SUBREDDIT: r/advice\n\nTITLE: My car\n\nPOST: My brother took it. Is it his?\n\nTL;DR:"
LABELS = ("SUBREDDIT", "TITLE", "POST")


@pytest.mark.parametrize(
    "text",
    [
        "SUBREDDIT is a story of a brother who took a car.",
        "SUBREDD is about a brother.",
        "Her subredtitle tells of a car.",
        "Title: A brother took a car.",
        "POST : a brother took a car.",
    ],
)
def test_a_sentence_with_a_label_of_the_source_is_about_the_assignment(text):
    assert share(text, FORM, labels=LABELS) == 1.0
    assert share(text, FORM) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "The poster titled a post about a car.",
        "Post offices sell cars: it is his.",
        "My title to the car is old.",
        "TL;DR: my brother took a car.",
    ],
)
def test_ordinary_words_that_are_labels_are_free(text):
    assert share(text, FORM, labels=LABELS) == 0.0


@pytest.mark.parametrize("text", ["He updated the post: it is his.", "Background: TLDR, he left."])
def test_labels_that_only_some_sources_have_are_free(text):
    assert share(text, f"{FORM}\n\nUPDATE: It is.\n\nBACKGROUND: Ours.", labels=LABELS) == 0.0


def test_a_label_that_the_source_uses_as_a_word_is_free():
    text = "The subreddit says so."
    assert share(text, FORM, labels=LABELS) == 1.0
    assert share(text, f"{FORM} I asked a subreddit.", labels=LABELS) == 0.0


@pytest.mark.parametrize("env_id", ["mlrl/tldr-v1", "mlrl/arxiv-v1"])
def test_the_instructions_are_about_the_assignment(env_id):
    family = mlrl_envs.make(env_id, split="sample").family
    for task in family.tasks:
        for told in family.instructions(task).values():
            assert task.source not in told
            assert assignment_score(told, told, task.source) == 0.0
            assert assignment_share(told, told, task.source) > 0.7


@pytest.mark.parametrize("env_id", ["mlrl/tldr-v1", "mlrl/arxiv-v1"])
def test_a_source_is_not_about_the_assignment(env_id):
    family = mlrl_envs.make(env_id, split="sample").family
    for task in family.tasks:
        for told in family.instructions(task).values():
            labels = family.brief.rules.labels
            assert assignment_share(task.source, told, task.source, labels) == 0.0


@given(st.lists(st.sampled_from(POST.split(". "))), st.lists(st.sampled_from(SOURCE.split(". "))))
def test_sentences_of_the_source_are_free(of_post, of_source):
    assert share(". ".join(of_post), POST) == 0.0
    assert share(". ".join(of_source)) == 0.0


@given(ANY_TEXT | PIECES.map(" ".join), ANY_TEXT, ANY_TEXT | PIECES.map("".join))
def test_any_texts_have_a_share_and_a_score(text, instructions, source):
    for labels in ((), LABELS):
        assert 0.0 <= assignment_share(text, instructions, source, labels) <= 1.0
        assert 0.0 <= assignment_score(text, instructions, source, labels) <= 1.0


@given(ANY_TEXT | PIECES.map(" ".join))
def test_a_text_without_its_own_words_has_no_share(text):
    assert share(text, text, labels=LABELS) == 0.0


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    ["you ", "\u201c", "\u2018you", '"your', ".)", "your. ", "You\n", ", you", "a", "\n ", ". \n"],
)
def test_time_is_linear_in_the_text(piece):
    text = piece * (10 * MAX_CHARS // len(piece))
    assert 0.0 <= share(text, text[: MAX_CHARS // 2]) <= 1.0
    assert 0.0 <= share(text) <= 1.0
