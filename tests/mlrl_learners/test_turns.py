"""Agents that take turns, from evaluation to the page: waiting is shown as waiting, and costs 0."""

import contextlib
import json
import re

import pytest
import torch

import mlrl_envs
import mlrl_learners
from mlrl_envs.errors import InvalidArgumentError
from mlrl_learners.actors import ReferenceActor
from mlrl_learners.algorithms.actor_critic import ActorCritic
from mlrl_learners.bench.rescore import rescore
from mlrl_learners.cli import main
from mlrl_learners.errors import ConfigError
from mlrl_learners.evaluation.collect import collect
from mlrl_learners.evaluation.evaluate import evaluate
from mlrl_learners.interop import SingleAgentView, TeamView
from mlrl_learners.interop.export import export
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.report import write_report
from mlrl_learners.runs.records import episode_record, parse_episode, rollout_record
from mlrl_learners.runs.stored import decode_episode
from mlrl_learners.runs.summaries import levels
from mlrl_learners.testing import ScriptedActor, ToyEnv
from mlrl_learners.testing.toys import TEXTS, TOYS
from mlrl_learners.training.loop import train
from mlrl_learners.training.metrics import count_tokens, rollout_metrics
from mlrl_learners.types import Completion, RolloutConfig

AGENTS = ("left", "right")
ENV_ID = "test/relay-v0"


@pytest.fixture(autouse=True)
def relay():
    """Register the toy."""
    with contextlib.suppress(InvalidArgumentError):
        mlrl_envs.register(ENV_ID, lambda: ToyEnv(TOYS["relay"], AGENTS))


class Tokens:
    """Picks 1 in two tokens, and keeps what it was asked."""

    agents = AGENTS

    def __init__(self, pick=1):
        self.pick, self.asked = pick, []

    def act(self, observations, *, num_samples=1, explore=True):
        self.asked += [(a, text) for each in observations for a, text in each.items()]
        answer = Completion(TEXTS[self.pick], (1, 2, 3), (4, 5), (-0.5, -0.25))
        return [{a: [answer] * num_samples for a in each} for each in observations]

    def update(self, rollouts):
        return {}

    def save(self, path):
        pass

    def load(self, path):
        pass


def played(actor=None):
    """Return the result of an evaluation of one episode."""
    return evaluate(env_id=ENV_ID, actor=actor or Tokens(), split=None)


def stored(actor=None):
    """Return its record, as a file has it."""
    (episode,) = played(actor).episodes
    return json.loads(json.dumps(episode_record(episode, env_id=ENV_ID)))


def test_an_episode_asks_each_agent_when_it_acts():
    actor = Tokens()
    result = played(actor)
    assert actor.asked == [
        ("left", "Pick 0 ."), ("right", "Pick 1 . 1"), ("left", "Pick 2 ."), ("right", "Pick 3 .")
    ]  # fmt: skip
    assert result.agent_returns == pytest.approx({"left": 2.5, "right": 0.5})
    assert result.mean_return == pytest.approx(1.5)
    assert result.solved_rate == 1.0
    assert {a: (u.prompt_tokens, u.completion_tokens) for a, u in result.agent_tokens.items()} == {
        "left": (6, 4), "right": (6, 4)
    }  # fmt: skip


def test_a_rollout_asks_one_prompt_a_node():
    actor = Tokens()
    config = RolloutConfig(num_samples=2, branching="chain")
    (rollout,) = collect_rollouts(
        [ToyEnv(TOYS["relay"], AGENTS)], actor, config, task_options=[{}], seeds=[0]
    ).rollouts
    assert len(actor.asked) == 4
    assert count_tokens([rollout]) == {"left": 8, "right": 8}
    metrics = rollout_metrics([rollout])
    assert metrics["train/return"] == pytest.approx(1.5)
    assert metrics["train/turns"] == pytest.approx(4)
    assert [node.turn for node in rollout.root.walk() if node.waiting] == [0, 1, 2]
    (other,) = (step for step in rollout.root.steps if step.child is None)
    assert dict(other.next_observations) == {"right": "Pick 1 . 1"}
    assert dict(other.next_waiting) == {"left": "Wait ."}


def test_records_tell_who_waited():
    record = stored()
    assert parse_episode(json.dumps(record)).turns[0].rewards == {"left": -0.5, "right": 0.0}
    turns = decode_episode(record).turns
    assert [turn.waiting for turn in turns] == [("right",), ("left",), ("right",), ()]
    assert [list(turn["observations"]) for turn in record["turns"]] == [
        ["left"], ["right"], ["left"], ["right"]
    ]  # fmt: skip


def test_a_rescored_episode_is_the_same():
    record = stored()
    assert rescore(ENV_ID, {}, [record]) == ([record], [])


def test_an_episode_in_which_others_acted_is_not_rescored():
    record = stored()
    turn = record["turns"][0]
    turn["actions"] = {"right": turn["actions"]["left"]}
    with pytest.raises(ConfigError, match="played by right, the environment has left"):
        rescore(ENV_ID, {}, [record])


def test_an_answer_is_exported_with_what_arrives_until_the_next(tmp_path):
    collect(env_id=ENV_ID, actor=Tokens(), out=tmp_path / "in.jsonl", split=None, tasks=1)
    export(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    left, right = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert [m["content"] for m in left["messages"]] == ["Pick 0 .", "Pick", "Pick 2 .", "Pick"]
    assert [turn["reward"] for turn in left["turns"]] == [1.5, 1.0]
    assert [turn["components"] for turn in left["turns"]] == [{"reward": 1.5}, {"reward": 1.0}]
    assert [turn["reward"] for turn in right["turns"]] == pytest.approx([0.3, 0.2])
    for each in (left, right):
        assert sum(turn["reward"] for turn in each["turns"]) == pytest.approx(each["reward"])


def test_a_run_is_reported_with_its_waiting(tmp_path):
    train(
        env_id=ENV_ID,
        learner=Tokens(),
        iterations=2,
        run_dir=tmp_path / "run",
        rollout=RolloutConfig(num_samples=2, branching="chain"),
        tasks_per_iteration=1,
        progress=False,
    )
    page = re.sub("<[^>]*>", "", write_report(tmp_path / "run").read_text())
    assert "right waits" in page
    assert "left waits" in page
    assert "reward 2" in page  # what left got meanwhile
    export(tmp_path / "run", tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    earned = [sum(turn["reward"] for turn in line["turns"]) for line in lines[:2]]
    assert earned == pytest.approx([2.5, 0.5])


def test_the_monitor_shows_waiting(tmp_path):
    from mlrl_learners.monitor.index import IndexEntry
    from mlrl_learners.monitor.pages.episode import OpenedEpisode, episode_page
    from mlrl_learners.monitor.query import Query
    from mlrl_learners.runs.summaries import summarise

    (rollout,) = collect_rollouts(
        [ToyEnv(TOYS["relay"], AGENTS)],
        Tokens(),
        RolloutConfig(num_samples=2, branching="chain"),
        task_options=[{}],
        seeds=[0],
    ).rollouts
    record = json.loads(json.dumps(rollout_record(rollout)))
    assert "Wait" not in json.dumps(record)
    assert summarise(record).best == pytest.approx(1.5)  # the mean over both agents
    entry = IndexEntry("0-0", 1, summarise(record))
    opened = OpenedEpisode("run", Query(), entry, 0, levels(record, []), None, None)
    page = re.sub("<[^>]*>", "", episode_page(opened))
    assert len(re.findall("right waits", page)) == 2
    assert len(re.findall("left waits", page)) == 1
    assert len(re.findall("left writes", page)) == 2


def test_play_prints_who_waits(capsys):
    assert main(["play", ENV_ID, "--actor", "reference"]) == 0
    said = capsys.readouterr().out
    assert said.count("right waits") == 2
    assert said.count("left waits") == 1
    assert "left earns 2.0000" in said


def test_trl_rewards_an_answer_with_what_arrives_while_its_agent_waits():
    asked = []

    def teammate(agent, text):
        asked.append((agent, text))
        return TEXTS[1]

    view = SingleAgentView(ENV_ID, agent="left", teammates=ScriptedActor(teammate))
    assert view.rows() == [
        {"prompt": [{"role": "user", "content": "Pick 0 ."}], "task_index": 0}
    ]  # fmt: skip
    rewards = view.reward(prompts=[], completions=list(TEXTS), task_index=[0, 0])
    assert rewards == [0.0, 1.5]
    assert asked == [("right", "Pick 1 . 0"), ("right", "Pick 1 . 1")]


def test_trl_lets_the_teammates_begin():
    view = SingleAgentView(ENV_ID, agent="right", teammates=ReferenceActor())
    assert view.rows()[0]["prompt"][0]["content"] == "Pick 1 . 1"
    rewards = view.reward(prompts=[], completions=list(TEXTS), task_index=[0, 0])
    assert rewards == pytest.approx([0.0, 0.3])


def test_comlrl_is_told_that_agents_must_wait():
    view = TeamView(ENV_ID)
    with pytest.raises(ConfigError, match="asks every agent in every turn, and right must wait"):
        view.formatters[0]({"task_index": 0})


def test_a_resumed_run_of_turns_is_bit_exact(tmp_path, monkeypatch):
    def run(folder):
        learner = mlrl_learners.make(
            "ippo",
            agents=AGENTS,
            model="tiny-random",
            sampling={"max_new_tokens": 4},
            group={"size": 2},
        )
        train(
            env_id=ENV_ID,
            learner=learner,
            iterations=3,
            run_dir=tmp_path / folder,
            tasks_per_iteration=2,
            resume=True,
            progress=False,
        )
        return learner.policies["left"].model.state_dict()

    whole = run("whole")
    update, calls = ActorCritic.update, []

    def fails_once(self, rollouts):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("killed")
        return update(self, rollouts)

    monkeypatch.setattr(ActorCritic, "update", fails_once)
    with pytest.raises(RuntimeError, match="killed"):
        run("parts")
    parts = run("parts")
    assert all(torch.equal(value, parts[name]) for name, value in whole.items())
    stories = [(tmp_path / name / "episodes.jsonl").read_text() for name in ("whole", "parts")]
    assert stories[0] == stories[1]
