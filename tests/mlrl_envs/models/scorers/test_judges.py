from dataclasses import replace

import pytest

from mlrl_envs.errors import EndpointError
from mlrl_envs.models import Endpoint
from mlrl_envs.models.scorers import (
    EndpointJudge,
    EntailmentScorer,
    LogitJudge,
    SimilarityScorer,
    TextToScore,
    as_scorer,
)
from mlrl_envs.models.scorers.judge import read_points

TEXT = TextToScore("the goat >>> ate ><<><<> it <>><>><", "my source", "be brief", ("another",))


def test_verdict_is_the_difference_between_both_orders(causal_folders, monkeypatch):
    asked = []

    def odds(loaded, prompts, letters):
        asked.append(prompts)
        # The model prefers A by 5 and likes the text by 2.
        return [7.0 if index % 2 == 0 else 3.0 for index in range(len(prompts))]

    monkeypatch.setattr("mlrl_envs.models.scorers.judge._letter_odds", odds)
    judge = LogitJudge(causal_folders[0], batch_tokens=10_000)
    assert judge.raw([TEXT]) == [2.0]
    assert judge.score_many([TEXT]) == pytest.approx([0.880797])
    assert replace(judge, calibration=(0, 4)).score_many([TEXT]) == [0.5]
    assert [len(prompts) for prompts in asked] == [2, 2, 2]


def test_text_cannot_close_its_quotation(causal_folders):
    judge = LogitJudge(causal_folders[0])
    _, user = judge._question(judge.load(), TEXT, ("good", "bad"))
    assert user["content"].count("<<<") == user["content"].count(">>>") == 3
    assert "be brief" in user["content"]
    assert "another" not in user["content"]


def test_long_prompt_keeps_the_question(causal_folders):
    long = TextToScore("goat " * 700)
    assert 0 <= LogitJudge(causal_folders[0]).score_many([long])[0] <= 1


def answer(text):
    message = {"role": "assistant", "content": text}
    return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


@pytest.fixture
def endpoint(chat_server):
    return Endpoint(chat_server.url, "m", max_retries=0)


def test_endpoint_judge_divides_points_by_ten(chat_server, endpoint):
    chat_server.answer = lambda request: answer("Fine.\n**Score:** 7.5")
    judge = EndpointJudge(endpoint)
    assert judge.score_many([TEXT, TEXT]) == [0.75, 0.75]
    assert judge.score_many([TEXT]) == [0.75]
    (request,) = chat_server.requests
    assert "my source" in request["messages"][1]["content"]


def test_endpoint_judge_asks_again_for_points(chat_server, endpoint):
    replies = iter(["Well.", "SCORE: 700", "SCORE: 10"])
    chat_server.answer = lambda request: answer(next(replies))
    assert EndpointJudge(endpoint).score_many([TEXT]) == [1.0]


def test_endpoint_judge_without_points_is_an_infra_error(chat_server, endpoint):
    chat_server.answer = lambda request: answer("Well.")
    with pytest.raises(EndpointError, match="SCORE: 7"):
        EndpointJudge(endpoint).score_many([TEXT])
    assert len(chat_server.requests) == 3


def test_endpoint_judge_is_built_from_a_mapping_and_hashed_without_its_address():
    options = {"base_url": "http://127.0.0.1:1/v1", "model": "m"}
    judge = as_scorer({"kind": "endpoint", "endpoint": options})
    moved = as_scorer({"kind": "endpoint", "endpoint": {**options, "base_url": "http://b/v1"}})
    other = as_scorer({"kind": "endpoint", "endpoint": {**options, "model": "n"}})
    assert judge.fingerprint == moved.fingerprint != other.fingerprint
    assert replace(judge, rubric="Be kind.").fingerprint != judge.fingerprint


@pytest.mark.parametrize(
    ("reply", "points"),
    [("SCORE: 7", 7), ("score = 3\nscore: 4.5", 4.5), ("7", None), ("score: 11", None), ("", None)],
)
def test_points_are_read_from_the_last_line(reply, points):
    assert read_points(reply) == points


def test_entailment_is_the_mean_over_sentences(nli_folder):
    scorer = EntailmentScorer(nli_folder)
    one, two, both = scorer.score_many(
        [TextToScore(text, "the rain") for text in ("a goat.", "my fence.", "a goat. my fence.")]
    )
    assert both == pytest.approx((one + two) / 2, abs=1e-5)
    assert scorer.score_many([TextToScore("", "the rain")]) == [0]


def test_similarity_is_a_cosine_less_that_of_the_others(encoder_folder):
    scorer = SimilarityScorer(encoder_folder, calibration=(-2, 2))
    own, other, against = scorer.raw(
        [
            TextToScore("a goat", "the rain"),
            TextToScore("a goat", "my fence"),
            TextToScore("a goat", "the rain", others=("my fence",)),
        ]
    )
    assert against == pytest.approx(own - other, abs=1e-6)
    assert scorer.raw([TextToScore("a goat", "a goat")]) == pytest.approx([1.0], abs=1e-5)
