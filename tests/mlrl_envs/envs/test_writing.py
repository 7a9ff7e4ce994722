import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, UnknownNameError
from mlrl_envs.testing import JUNK_TEXTS

ANY_TEXT = st.text(st.characters(exclude_categories=()))
ENV_IDS = ("mlrl/tldr-v1", "mlrl/arxiv-v1")
FOLDER = Path(__file__).parents[1] / "exploits" / "honest"


@pytest.fixture(params=ENV_IDS)
def env_id(request):
    return request.param


def _honest(env_id):
    file = FOLDER / f"{env_id.removeprefix('mlrl/').removesuffix('-v1')}.jsonl"
    row = json.loads(file.read_text().splitlines()[0])
    return row.pop("task_index"), row


def _play(env_id, *turns, **options):
    index, _ = _honest(env_id)
    env = mlrl_envs.make(env_id, split="sample", max_turns=len(turns), **options)
    env.reset(options={"task_index": index})
    return [env.step(actions) for actions in turns]


def test_agents_are_the_roles_of_the_task():
    assert mlrl_envs.make(ENV_IDS[0], split="sample").possible_agents == ["summary", "elaboration"]
    assert mlrl_envs.make(ENV_IDS[1], split="sample").possible_agents == [
        "background",
        "complementary",
    ]


def test_observation_holds_the_whole_source(env_id):
    env = mlrl_envs.make(env_id, split="sample")
    observations, _ = env.reset(seed=0)
    assert all(env.task.source in text for text in observations.values())
    assert len(set(observations.values())) == 2


def test_each_writer_of_an_introduction_is_told_what_the_other_covers():
    observations, _ = mlrl_envs.make("mlrl/arxiv-v1", split="sample").reset(seed=0)
    assert "teammate writes the methodology" in observations["background"]
    assert "teammate writes the background" in observations["complementary"]
    assert all("do not repeat" in text for text in observations.values())


@pytest.mark.parametrize(("reward", "high"), [("grounded", 1.0), ("paper", 3.0)])
def test_reward_range(env_id, reward, high):
    assert mlrl_envs.make(env_id, split="sample", reward=reward).reward_range == (0.0, high)


def test_components_are_named_and_sum_to_the_reward(env_id):
    _, honest = _honest(env_id)
    ((_, rewards, terminations, _, infos),) = _play(env_id, honest)
    for agent in honest:
        parts = infos[agent]["components"]
        assert list(parts) == [*honest, "length", "division"]
        assert sum(parts.values()) == pytest.approx(rewards[agent])
        assert terminations[agent] is infos[agent]["solved"] is True


def test_both_earn_the_same(env_id):
    _, honest = _honest(env_id)
    ((_, rewards, *_),) = _play(env_id, honest)
    assert len(set(rewards.values())) == 1


def test_one_good_text_beside_a_bad_one_earns_part(env_id):
    _, honest = _honest(env_id)
    for agent in honest:
        ((_, rewards, *_),) = _play(env_id, {**honest, agent: "Nothing."})
        assert 0.05 < rewards[agent] < 0.3


def test_later_turns_earn_only_their_gain(env_id):
    _, honest = _honest(env_id)
    first = next(iter(honest))
    weak = {agent: text[: len(text) // 5] for agent, text in honest.items()}
    paid = [step[1][first] for step in _play(env_id, weak, weak, honest)]
    ((_, at_once, *_),) = _play(env_id, honest)
    assert paid[1] == 0.0
    assert sum(paid) == pytest.approx(at_once[first])


def test_the_longer_an_honest_text_the_better(env_id):
    _, honest = _honest(env_id)
    second = list(honest)[1]
    text = honest[second]
    scores = [
        _play(env_id, {**honest, second: text[: len(text) * part // 4]})[0][1][second]
        for part in (1, 2, 3, 4)
    ]
    assert scores == sorted(scores)
    assert scores[0] < scores[-1]


def _with_invented_facts(env_id):
    # As many as the longest text of the two tasks may have, and some more.
    _, honest = _honest(env_id)
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    added = f" They met in 1847, and later on {', '.join(days)}."
    return {agent: text + added for agent, text in honest.items()}


def _fact_checks(infos):
    return [
        [check for check in info["diagnostics"]["checks"] if check["name"] == "facts"]
        for info in infos.values()
    ]


def test_invented_facts_lower_the_reward_where_facts_are_read(env_id):
    invented = _with_invented_facts(env_id)
    ((_, without, *_),) = _play(env_id, invented)
    ((_, rewards, _, _, infos),) = _play(env_id, invented, facts=True)
    assert all(0.0 < 2 * rewards[agent] < without[agent] for agent in invented)
    for (check,) in _fact_checks(infos):
        assert check["status"] == "partial"
        assert check["details"] == ["take numbers and names from the source."]


def test_one_invented_number_lowers_the_reward_of_a_summary():
    _, honest = _honest("mlrl/tldr-v1")
    texts = [honest["summary"], honest["summary"].replace("nearly all", "ninety-five")]
    plain, read = (
        [
            _play("mlrl/tldr-v1", {**honest, "summary": text}, facts=facts)[0][1]["summary"]
            for text in texts
        ]
        for facts in (False, True)
    )
    assert plain[1] == pytest.approx(plain[0], abs=0.02)
    assert read[0] == plain[0]
    assert read[1] < 0.9 * read[0]


def test_facts_are_not_read_by_default(env_id):
    invented = _with_invented_facts(env_id)
    (default,) = _play(env_id, invented)
    assert default == _play(env_id, invented, facts=False)[0]
    assert _fact_checks(default[-1]) == [[], []]


def test_an_honest_pair_earns_the_same_where_facts_are_read(env_id):
    _, honest = _honest(env_id)
    ((_, rewards, _, _, infos),) = _play(env_id, honest, facts=True)
    assert rewards == _play(env_id, honest)[0][1]
    assert all(check["passed"] for (check,) in _fact_checks(infos))


def test_facts_are_read_beside_a_text_scorer(env_id):
    class Praise:
        fingerprint = "praise"

        def score_many(self, requests):
            return [1.0 for _ in requests]

    invented = _with_invented_facts(env_id)
    options = {"reward": "judged", "scorer": Praise()}
    (judged, grounded) = (
        _play(env_id, invented, facts=True, **kind)[0][1] for kind in (options, {})
    )
    assert judged == grounded


def _about_the_assignment(env_id):
    # Half of each text is honest, so that the rewards without the option stay above 0.
    _, honest = _honest(env_id)
    added = " Your teammate writes the rest in plain prose. Your rewritten text is yours to read."
    return {agent: text[: len(text) // 2] + added * 3 for agent, text in honest.items()}


def _assignment_checks(infos):
    return [
        [check for check in info["diagnostics"]["checks"] if check["name"] == "assignment"]
        for info in infos.values()
    ]


def test_sentences_about_the_assignment_lower_the_reward_where_they_are_read(env_id):
    texts = _about_the_assignment(env_id)
    ((_, without, *_),) = _play(env_id, texts)
    ((_, rewards, _, _, infos),) = _play(env_id, texts, assignment=True)
    assert all(2 * rewards[agent] < without[agent] for agent in texts)
    for (check,) in _assignment_checks(infos):
        assert not check["passed"]
        assert check["details"] == [
            "write about the source, not about your assignment or to your reader."
        ]


def test_the_assignment_is_not_read_by_default(env_id):
    (default,) = _play(env_id, _about_the_assignment(env_id))
    assert default == _play(env_id, _about_the_assignment(env_id), assignment=False)[0]
    assert _assignment_checks(default[-1]) == [[], []]


def test_an_honest_pair_earns_the_same_where_the_assignment_is_read(env_id):
    _, honest = _honest(env_id)
    ((_, rewards, _, _, infos),) = _play(env_id, honest, facts=True, assignment=True)
    assert rewards == _play(env_id, honest)[0][1]
    assert all(check["passed"] for (check,) in _assignment_checks(infos))


def test_instructions_are_the_prompts_without_the_source(env_id):
    env = mlrl_envs.make(env_id, prompts=["A fox ran over the frozen lake."])
    observations, _ = env.reset(seed=0)
    told = env.family.instructions(env.task)
    for agent, shown in observations.items():
        assert "fox" not in told[agent]
        assert shown == told[agent].replace("\n\n\n\n\n", f"\n\n{env.task.source}\n\n")


@pytest.mark.parametrize("reward", ["grounded", "paper"])
@pytest.mark.parametrize("text", JUNK_TEXTS, ids=range(len(JUNK_TEXTS)))
def test_junk_earns_the_floor(env_id, text, reward):
    _, honest = _honest(env_id)
    ((_, rewards, *_),) = _play(env_id, dict.fromkeys(honest, text), reward=reward)
    assert all(value <= (0.05 if reward == "grounded" else 0.5) for value in rewards.values())


@settings(max_examples=80)
@given(ANY_TEXT, ANY_TEXT, st.sampled_from(ENV_IDS), st.sampled_from(["grounded", "paper"]))
def test_any_texts_stay_in_range(first, second, env_id, reward):
    env = mlrl_envs.make(env_id, split="sample", reward=reward)
    env.reset(seed=0)
    _, rewards, *_ = env.step(dict(zip(env.possible_agents, (first, second), strict=True)))
    low, high = env.reward_range
    assert all(low <= value <= high for value in rewards.values())


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["A dog ran home. " * 60_000, "however " * 120_000, "a\n" * 500_000]
)
def test_a_megabyte_is_scored_at_once(env_id, text):
    _, honest = _honest(env_id)
    ((_, rewards, *_),) = _play(env_id, dict.fromkeys(honest, text))
    assert set(rewards.values()) == {0.0}


def test_there_is_no_answer_key(env_id):
    env = mlrl_envs.make(env_id, split="sample")
    env.reset(seed=0)
    assert env.reference_actions() is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"data_path": 3}, InvalidArgumentError, "data_path must be a path, got 3"),
        ({"data_pth": "x"}, UnknownNameError, "did you mean 'data_path'"),
        ({"feedback": "diagnostic"}, UnknownNameError, "did you mean 'diagnostics'"),
        ({"facts": "yes"}, InvalidArgumentError, "facts must be a bool, got 'yes'"),
        ({"assignment": 1}, InvalidArgumentError, "assignment must be a bool, got 1"),
        (
            {"assignment": True, "reward": "paper"},
            InvalidArgumentError,
            "got assignment=True with 'paper'",
        ),
        ({"facts": True, "reward": "paper"}, InvalidArgumentError, "got facts=True with 'paper'"),
    ],
)
def test_senseless_options_are_refused(env_id, options, error, message):
    with pytest.raises(error, match=message):
        mlrl_envs.make(env_id, split="sample", **options)


def test_rows_come_from_a_path(tmp_path):
    file = tmp_path / "posts.jsonl"
    file.write_text("".join(json.dumps({"prompt": f"POST: {n}"}) + "\n" for n in range(10)))
    assert mlrl_envs.make("mlrl/tldr-v1", split="eval", data_path=file).num_tasks == 2
