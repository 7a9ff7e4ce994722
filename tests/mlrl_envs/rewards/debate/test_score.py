import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlrl_envs
from mlrl_envs.rewards.debate.argument import argument_parts, end_parts
from mlrl_envs.rewards.debate.score import zero_sum

ANY_TEXT = st.text(st.characters(exclude_categories=()))
FOLDER = Path(__file__).parents[2] / "exploits"
HONEST = json.loads((FOLDER / "honest_debates.json").read_text("utf-8"))["debate/0"]


def _play(turns, **options):
    env = mlrl_envs.make("mlrl/debate-v1", **{"split": "all", "max_turns": len(turns), **options})
    env.reset(options={"task_id": "debate/0"})
    return env, [env.step(actions) for actions in turns]


def _components(turns, **options):
    return [result[4]["pro"]["components"] for result in _play(turns, **options)[1]]


def test_paper_pays_each_argument_and_the_end():
    env, results = _play(HONEST, reward="paper")
    task = env.task
    for side, points in (("pro", task.pro_points), ("con", task.con_points)):
        said = [turn[side] for turn in HONEST]
        scores = [sum(argument_parts(text, task.proposition).values()) for text in said]
        end = sum(end_parts(said, task.proposition, points).values())
        assert results[0][1][side] == pytest.approx(scores[0], abs=1e-9)
        assert results[1][1][side] == pytest.approx(scores[1] + end, abs=1e-9)


def test_paper_end_comes_with_the_last_turn_alone():
    names = [set(parts) for parts in _components([*HONEST, HONEST[0]], reward="paper")]
    assert names[0] == names[1] == {"length", "evidence", "reasoning", "structure", "relevance"}
    assert names[2] - names[0] == {"mean_argument", "consistency", "coverage"}


@pytest.mark.parametrize("reward", ["grounded", "paper"])
def test_zero_sum_rewards_sum_to_a_constant(reward):
    turns = [*HONEST, {"pro": HONEST[0]["pro"], "con": ""}]
    _, results = _play(turns, reward=reward, mode="zero_sum")
    _, own = _play(turns, reward=reward)
    for result, cooperative in zip(results, own, strict=True):
        total = 1.0 if reward == "grounded" else 0.0
        assert sum(result[1].values()) == pytest.approx(total, abs=1e-9)
        ahead = cooperative[1]["pro"] - cooperative[1]["con"]
        scale = 0.5 if reward == "grounded" else 1.0
        assert result[1]["pro"] == pytest.approx(total / 2 + scale * ahead, abs=1e-9)


def test_zero_sum_shows_own_parts_and_the_opponent():
    parts = {"pro": {"a": 0.25, "b": 0.5}, "con": {"a": 0.5}}
    components = zero_sum(parts, scale=0.5, base=0.5)
    assert components["pro"] == {"even": 0.5, "a": 0.125, "b": 0.25, "opponent": -0.25}
    assert zero_sum(parts, scale=1.0, base=0.0)["con"] == {"a": 0.5, "opponent": -0.75}


def test_grounded_parts_are_topic_and_side():
    for parts in _components(HONEST):
        assert set(parts) == {"topic", "side"}
        assert 0.0 < parts["side"] <= parts["topic"] * 2 / 3 + 1e-9


def test_key_points_of_another_proposition_count_against():
    other = (
        "Animals suffer stress in cages, and their wild behaviour needs a large territory. "
        "Breeding rarely returns a species to the wild, and documentaries teach children better "
        "than any keeper could."
    )
    assert sum(_components([{"pro": other, "con": ""}])[0].values()) < 0.2


def test_quoting_denying_and_conceding_cost_nothing():
    plain = HONEST[1]["pro"]
    polite = "My opponent is right that this has costs, but they are not large. " + plain
    earned = [
        sum(_components([HONEST[0], {"pro": text, "con": HONEST[1]["con"]}])[1].values())
        for text in (plain, polite)
    ]
    assert earned[1] >= 0.9 * earned[0] > 0.7


def test_each_side_is_paid_for_itself():
    _, (result,) = _play([{"pro": HONEST[0]["pro"], "con": ""}])
    assert result[1]["pro"] > 0.7
    assert result[1]["con"] == 0.0


def test_debate_is_never_solved_and_lasts_to_its_last_turn():
    for max_turns in (1, 2, 4):
        env, results = _play([HONEST[0]] * max_turns, max_turns=max_turns)
        ends = [(result[2]["pro"], result[3]["pro"]) for result in results]
        assert ends == [(False, False)] * (max_turns - 1) + [(False, True)]
        assert env.agents == []


def test_feedback_names_what_is_weak():
    _, results = _play([{"pro": HONEST[0]["pro"], "con": "I concede."}])
    checks = {side: results[0][4][side]["diagnostics"]["checks"] for side in ("pro", "con")}
    assert all(check["passed"] for check in checks["pro"])
    weak = [check["name"] for check in checks["con"] if not check["passed"]]
    assert weak == ["prose", "topic"]


def test_no_key_point_is_disclosed():
    env, results = _play([{"pro": "", "con": ""}, {"pro": "a", "con": "b"}])
    said = " ".join(f"{result[0]} {result[4]}" for result in results)
    for point in (*env.task.pro_points, *env.task.con_points):
        assert point not in said


@settings(max_examples=60)
@given(
    st.lists(st.tuples(ANY_TEXT, ANY_TEXT), min_size=1, max_size=3),
    st.sampled_from(["grounded", "paper"]),
    st.sampled_from(["cooperative", "zero_sum"]),
)
def test_any_texts_score_in_range(texts, reward, mode):
    turns = [{"pro": pro, "con": con} for pro, con in texts]
    env, results = _play(turns, reward=reward, mode=mode)
    low, high = env.reward_range
    for result in results:
        assert all(low - 1e-9 <= value <= high + 1e-9 for value in result[1].values())
        if mode == "zero_sum":
            assert sum(result[1].values()) == pytest.approx(low + high, abs=1e-9)
