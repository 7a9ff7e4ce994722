"""Readers of stored rollouts and episodes count the learner's own agents alone."""

import copy
import json

import pytest

import mlrl_envs
from mlrl_learners.actors import ScriptActor
from mlrl_learners.bench.rescore import rescore
from mlrl_learners.bench.results import figures_of as suite_figures
from mlrl_learners.figures.episode_figures import figures_of
from mlrl_learners.figures.means import team_return
from mlrl_learners.functional.returns import joint_returns
from mlrl_learners.interop.export import export
from mlrl_learners.play.rollout import collect_rollouts, play_episodes
from mlrl_learners.report import render_report
from mlrl_learners.runs.demonstrations import read_demonstrations, read_joint_turns
from mlrl_learners.runs.records import episode_record, rollout_record
from mlrl_learners.runs.stored_run import read_run
from mlrl_learners.runs.summaries import levels, summarise
from mlrl_learners.runs.tree import complete_episodes, first_episode
from mlrl_learners.selfplay.own import own_episode
from mlrl_learners.selfplay.seats import Opponent
from mlrl_learners.types import RolloutConfig

AGENTS = ("player_0", "player_1")


def seats_of(seat):
    return {seat: Opponent("script:nash", ScriptActor("nash"))}


def other(seat):
    return AGENTS[1 - AGENTS.index(seat)]


@pytest.fixture(params=AGENTS)
def seat(request):
    """The agent that the opponent plays."""
    return request.param


@pytest.fixture
def rollouts(seat):
    env = mlrl_envs.make("mlrl/kuhn-v0", split="sample")
    return collect_rollouts(
        [copy.deepcopy(env) for _ in range(4)],
        ScriptActor("random"),
        RolloutConfig(2),
        task_options=[{"task_index": number} for number in range(4)],
        seeds=[0] * 4,
        seats=[seats_of(seat)] * 4,
    ).rollouts


@pytest.fixture
def episodes(seat):
    env = mlrl_envs.make("mlrl/kuhn-v0", split="sample")
    return play_episodes(
        [copy.deepcopy(env) for _ in range(4)],
        ScriptActor("random"),
        task_options=[{"task_index": number} for number in range(4)],
        seeds=[0] * 4,
        explore=True,
        seats=[seats_of(seat)] * 4,
    )


@pytest.fixture
def run_dir(rollouts, episodes, tmp_path):
    """A run directory with an evaluation after its only iteration."""
    lines = [rollout_record(r, iteration=1, rollout=n) for n, r in enumerate(rollouts)]
    (tmp_path / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    mean = sum(map(team_return, episodes)) / len(episodes)
    evaluation = {
        "iteration": 1,
        "env_id": "mlrl/kuhn-v0",
        "mean_return": mean,
        "episodes": [episode_record(each) for each in episodes],
    }
    (tmp_path / "evaluations.jsonl").write_text(json.dumps(evaluation) + "\n")
    return tmp_path


@pytest.fixture
def file(episodes, tmp_path):
    """A file of `mlrl evaluate --episodes`."""
    path = tmp_path / "evaluated.jsonl"
    records = [episode_record(each, env_id="mlrl/kuhn-v0") for each in episodes]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_games_are_won_or_lost(rollouts, episodes, seat):
    assert all(team_return(each) for each in episodes)
    assert all(any(joint_returns(each.root, other(seat), gamma=1.0)) for each in rollouts)


def test_a_summary_has_the_returns_that_training_logs(rollouts, seat):
    for rollout in rollouts:
        values = joint_returns(rollout.root, other(seat), gamma=1.0)
        record = rollout_record(rollout)
        found = summarise(record)
        earned = [episode.team_return for episode in complete_episodes(record)]
        assert (found.mean, found.best) == (sum(values) / len(values), max(earned))


def test_paths_through_a_rollout_have_the_learners_return(rollouts, seat):
    for rollout in rollouts:
        record = rollout_record(rollout)
        for episode in [first_episode(record), *complete_episodes(record)]:
            assert set(episode.returns) == set(AGENTS)
            assert episode.team_return == episode.returns[other(seat)] != 0
            assert episode.opponents == {seat: "script:nash"}


def test_rewards_of_turns_are_the_learners(rollouts, episodes, seat):
    records = [*map(rollout_record, rollouts), *map(episode_record, episodes)]
    for record in records:
        for level in levels(record, []):
            assert level.reward == level.turn.rewards[other(seat)]


def test_the_best_branch_is_the_learners(rollouts, seat):
    for rollout in rollouts:
        values = joint_returns(rollout.root, other(seat), gamma=1.0)
        shown = levels(rollout_record(rollout), [])[0]
        assert [branch.value for branch in shown.branches] == list(values)


def test_the_metric_of_a_file_is_that_of_the_learners_part(episodes):
    pytest.importorskip("evaluate", reason="needs pip install 'mlrl[bench]'")
    from mlrl_learners.metric_modules.team_return import TeamReturn

    lines = [json.dumps(episode_record(each)) for each in episodes]
    found = TeamReturn()._compute(predictions=lines)
    own = figures_of([own_episode(each) for each in episodes], ks=[1], seed=0)
    assert found["mean_return"] == own.mean_return
    assert {name for name in found if name.startswith("agent/")} == {
        f"agent/{agent}" for agent in own.agent_returns
    }
    assert found["tokens"] == own.tokens


def test_figures_of_a_suite_leave_out_opponents(episodes, seat):
    found = suite_figures([episode_record(each) for each in episodes])
    assert set(found["agent_returns"]) == {other(seat)}
    assert found["mean"] == found["agent_returns"][other(seat)]
    assert sum(found["components"].values()) == pytest.approx(found["mean"])


def test_rescoring_keeps_the_learners_return(episodes):
    records = [episode_record(each) for each in episodes]
    scored, changes = rescore("mlrl/kuhn-v0", {"split": "sample"}, records)
    assert not changes
    assert [each["return"] for each in scored] == list(map(team_return, episodes))


def test_only_the_learners_turns_are_demonstrations(file, episodes, seat):
    asked = [turn for each in episodes for turn in each.turns if other(seat) in turn.completions]
    assert [each.agent for each in read_demonstrations(file)] == [other(seat)] * len(asked)


def test_joint_turns_are_the_learners(file, seat):
    turns = read_joint_turns(file)
    assert turns
    for turn in turns:
        assert set(turn.observations) == set(turn.actions) == set(turn.earned_by) == {other(seat)}
        assert turn.earned == turn.earned_by[other(seat)] != 0


@pytest.mark.parametrize("kind", ["run", "file"])
def test_exports_have_the_learners_conversations_and_name_the_opponents(
    kind, run_dir, file, seat, tmp_path
):
    out = tmp_path / "out.jsonl"
    result = export(run_dir if kind == "run" else file, out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert result.conversations == len(rows) > 0
    for row in rows:
        assert row["agent"] == other(seat)
        assert row["team_reward"] == row["reward"] != 0
        assert row["opponents"] == {seat: "script:nash"}


def test_exports_filter_by_the_learners_return(file, episodes, tmp_path):
    result = export(file, tmp_path / "out.jsonl", filter_reward=0.5)
    assert result.episodes == sum(team_return(each) >= 0.5 for each in episodes)


def test_the_report_names_the_opponents_and_shows_the_learners_returns(run_dir, rollouts, seat):
    document = render_report(read_run(run_dir))
    assert f"{seat} (script:nash)</bdi> writes" in document
    assert f"{other(seat)}</bdi> writes" in document
    assert "return 0<" not in document
    assert "4 episodes over 4 tasks, against script:nash." in document
    assert f"{seat}: characters" not in document


def test_the_monitor_names_the_opponents_and_shows_the_learners_returns(run_dir, seat):
    pytest.importorskip("starlette")
    from mlrl_learners.monitor.library import Library
    from mlrl_learners.monitor.views import PAGES, PageRequest

    library = Library(run_dir.parent)
    for source in ("training", "evaluation"):
        words = {
            "run": run_dir.name,
            "key": "0" if source == "training" else "0-0",
            "source": source,
        }
        page = PAGES["/episode"](library, PageRequest(words))
        assert f"{seat} (script:nash)</bdi> writes" in page
        assert f"{other(seat)}</bdi> writes" in page
        assert "return 0<" not in page
