import contextlib
import copy
import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("scipy")
pytest.importorskip("jsonschema_rs")

from mlrl_learners.actors import ReferenceActor
from mlrl_learners.bench import transcripts
from mlrl_learners.bench.leaderboard import check_submission
from mlrl_learners.bench.results import (
    figures_of,
    overall_of,
    read_result,
    read_transcripts,
    save_result,
)
from mlrl_learners.bench.suite import Entry, load_suite
from mlrl_learners.errors import ConfigError

pytestmark = pytest.mark.usefixtures("quick")


def forge_components(_, episodes):
    for episode in episodes:
        episode["turns"][-1]["components"] = {a: {"forged": 1.0} for a in episode["returns"]}


def forge_rewards(episode):
    """An episode whose sums are right and whose rewards are not."""
    for agent in episode["returns"]:
        episode["turns"][0]["rewards"][agent] += 0.5
        episode["returns"][agent] += 0.5
    episode["return"] += 0.5


def forge_left_out(result, episodes):
    del episodes[1]
    result["entries"][0]["left_out"] = 1
    refigure(result, episodes)


def forge_copies(result, episodes):
    first = next(e for e in episodes if e["entry"] == result["entries"][0]["name"])
    for place, episode in enumerate(episodes):
        if episode["entry"] == first["entry"]:
            episodes[place] = {**first, "key": episode["key"]}
    refigure(result, episodes)


def forge_tokens(result, episodes):
    for turn in episodes[0]["turns"]:
        turn["tokens"] = dict.fromkeys(turn["tokens"], 65)
    refigure(result, episodes)


def forge_returns(result, episodes):
    for episode in episodes:
        episode["return"] = 1.0
    refigure(result, episodes)


def forge_all_rewards(result, episodes):
    for episode in episodes:
        forge_rewards(episode)
    refigure(result, episodes)


def refigure(result, episodes):
    """Let every figure follow from the forged episodes."""
    for entry in result["entries"]:
        entry.update(figures_of([e for e in episodes if e["entry"] == entry["name"]]))
    result["overall"] = overall_of(result["entries"])


def forge_entry(**values):
    return lambda result, _: result["entries"][0].update(values)


def forge_overall(**values):
    return lambda result, _: result["overall"].update(values)


FORGERIES = {
    "mean": (forge_entry(mean=1.0), ": mean does not follow"),
    "interval": (forge_entry(interval=[0.8, 0.9]), ": interval does not follow"),
    "iqm interval": (forge_entry(iqm_interval=[0.8, 0.9]), ": iqm_interval does not follow"),
    "components": (forge_entry(components={"cheat": 5.0}), ": components does not follow"),
    "agent returns": (forge_entry(agent_returns={}), ": agent_returns does not follow"),
    "pass at k": (forge_entry(pass_at_k={"1": 1.0}), ": pass_at_k does not follow"),
    "seconds": (forge_entry(seconds=99.0), ": seconds does not follow"),
    "overall mean": (forge_overall(mean=9.9), "overall: mean does not follow"),
    "overall tokens": (forge_overall(tokens=1), "overall: tokens does not follow"),
    "overall unknown": (forge_overall(best=1), "overall: best does not follow"),
    "budget": (forge_entry(budget={"turns": 1, "tokens": 1, "samples": 1}), "budget is"),
    "data": (forge_entry(data="0" * 64), "data is"),
    "agents": (forge_entry(agents=["me"]), "agents is"),
    "planned": (forge_entry(planned=1), "planned is 1, it must be 2"),
    "return": (forge_returns, "return does not follow from its rewards"),
    "rewards": (forge_all_rewards, "rewards of "),
    "components of turns": (forge_components, "scored here"),
    "left out": (forge_left_out, "left_out is 1, it must be 0"),
    "copies": (forge_copies, "1 episodes that the suite asks for are missing"),
    "doubled": (lambda _, e: e.append(e[0]), "1 episodes are doubled"),
    "tokens": (forge_tokens, "has 65 tokens, the budget is 64"),
}


@pytest.fixture
def submission(add_result):
    suite = load_suite("smoke").only(["mlrl/story-v1", "mlrl/math-v2"])
    return add_result("theirs", "The fox. ANSWER: 3", suite=suite.as_dict())


@pytest.fixture
def whole(submission):
    result = read_result(submission)
    return result, read_transcripts(submission, result)


def forge_result(path, change):
    result = read_result(path)
    episodes = read_transcripts(path, result)
    change(result, episodes)
    save_result(path, result, episodes)


def test_honest_result_is_accepted(submission):
    assert check_submission(submission) == []


@pytest.mark.parametrize(("forge", "problem"), FORGERIES.values(), ids=FORGERIES)
def test_forgeries_are_found(submission, forge, problem):
    forge_result(submission, forge)
    assert [p for p in check_submission(submission) if problem in p]


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda r: r["transcripts"].update(episodes=99), "have 4 episodes, not 99"),
        (
            lambda r: r.update(
                failures=[{"entry": "a", "error": "b", "episodes": 1, "message": "c"}]
            ),
            "a complete run has no failures",
        ),
    ],
)
def test_edited_counts_and_failures_are_found(submission, edit, problem):
    result = json.loads(submission.read_text())
    edit(result)
    submission.write_text(json.dumps(result))
    assert [found for found in check_submission(submission) if problem in found]


def test_all_is_scored_anew_where_other_code_has_scored(submission):
    def forge(result, episodes):
        result["entries"][0]["scorers"] = ["0" * 64]
        forge_components(result, episodes)

    forge_result(submission, forge)
    for seed in range(3):
        found = check_submission(submission, sample=1, seed=seed)
        assert len([p for p in found if p.startswith("mlrl/story") and "scored here" in p]) == 2


def test_sample_is_drawn_by_the_checker(submission):
    forge_result(submission, lambda _, episodes: forge_rewards(episodes[0]))
    found = [
        any("scored here" in p for p in check_submission(submission, sample=1, seed=seed))
        for seed in range(6)
    ]
    assert any(found)
    assert not all(found)


def test_reference_leaves_out_tasks_without_a_reference_alone(add_result):
    suite = load_suite("smoke").only(["mlrl/story-v1"])

    def refuse(agents, **_):
        return ReferenceActor()

    path = add_result("theirs", suite=suite.as_dict(), make=refuse, base="reference")
    assert check_submission(path) == []


def test_files_options_make_no_environment(submission, monkeypatch):
    def forge(result, _):
        result["suite"]["entries"][0]["options"] = {"data_path": "/nowhere"}

    forge_result(submission, forge)
    monkeypatch.setattr(Entry, "make_env", lambda _: pytest.fail("made"))
    assert check_submission(submission)


def test_file_that_grows_without_end_is_refused(submission, monkeypatch):
    monkeypatch.setattr(transcripts, "LARGEST", 100)
    with pytest.raises(ConfigError, match="holds more than"):
        check_submission(submission)


def test_other_suite_under_our_name_is_found(submission):
    def forge(result, _):
        result["suite"]["entries"][0]["budget"]["tokens"] = 4096

    forge_result(submission, forge)
    problems = check_submission(submission)
    assert any("the suite's hash is" in problem for problem in problems)
    assert any("is not that of our suite" in problem for problem in problems)


def test_suite_of_ones_own_is_not_ours(add_result):
    assert any("none of our suites" in p for p in check_submission(add_result("a")))


def test_other_transcripts_are_refused(submission):
    result = json.loads(submission.read_text())
    submission.with_name(result["transcripts"]["file"]).write_bytes(b"{}")
    with pytest.raises(ConfigError, match="SHA-256"):
        check_submission(submission)


def places(value, path=()):
    """Every place below a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))


def damage(value, path, put):
    *above, last = path
    for key in above:
        value = value[key]
    if put == "nothing":
        del value[last]
    else:
        value[last] = put


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_transcripts_are_a_finding_and_no_traceback(submission, whole, data):
    result, episodes = copy.deepcopy(whole)
    path = data.draw(st.sampled_from(list(places(episodes))))
    put = data.draw(st.sampled_from(["nothing", None, [], {}, -1, 0.5, "text", math.inf]))
    damage(episodes, path, put)
    save_result(submission, result, episodes)
    with contextlib.suppress(ConfigError):
        assert isinstance(check_submission(submission, sample=9), list)


def test_an_agent_without_a_return_is_found(submission):
    forge_result(submission, lambda _, episodes: episodes[1]["returns"].pop("setup"))
    assert any("returns of setup" in problem for problem in check_submission(submission))


@pytest.mark.parametrize("lost", ["task_id", "return", "turns", "entry", "suite_seed"])
def test_lost_key_is_named_with_its_line(submission, lost):
    forge_result(submission, lambda _, episodes: episodes[1].pop(lost))
    with pytest.raises(ConfigError, match=rf"jsonl\.gz:2 .*{lost}"):
        check_submission(submission)
