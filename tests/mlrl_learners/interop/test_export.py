import gzip
import json
import tracemalloc

import pytest

import mlrl_learners
from mlrl_learners.cli import main
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.evaluation.collect import collect
from mlrl_learners.evaluation.evaluate import evaluate
from mlrl_learners.interop.export import export
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.types import Completion, RolloutConfig

ENV_ID = "test/addition-v0"

pytestmark = pytest.mark.usefixtures("addition_env")


class Tokens:
    """Answers rightly from an agent's second try on, in tokens."""

    agents = ("left", "right")

    def __init__(self, wrong_below=1):
        self.wrong_below = wrong_below

    def act(self, observations, *, num_samples=1, explore=True):
        return [{a: self._group(a, t, num_samples) for a, t in o.items()} for o in observations]

    def update(self, rollouts):
        return {}

    def save(self, path):
        pass

    def load(self, path):
        pass

    def _group(self, agent, text, num_samples):
        return [self._answer(agent, text, number) for number in range(num_samples)]

    def _answer(self, agent, text, number):
        right = agent == "left" or number >= self.wrong_below
        return Completion(
            str(int(text) + 1) if right else "?",
            prompt_ids=(1, int(text)),
            token_ids=(5, number),
            logprobs=(-0.5, -0.25),
            finish_reason="stop" if right else "length",
        )


def joint_action(agents, reward, child=None):
    return {
        "samples": dict.fromkeys(agents, 0),
        "rewards": dict.fromkeys(agents, reward),
        "components": {agent: {"tests": reward} for agent in agents},
        "terminated": child is None,
        "truncated": False,
        "solved": False,
        "child": child,
    }


def decision(agents, step):
    answers = {agent: [{"text": "1", "finish_reason": "stop"}] for agent in agents}
    return {
        "observations": dict.fromkeys(agents, "0"),
        "completions": answers,
        "steps": [step],
    }


LEFT_EARLY = {
    "iteration": 1,
    "rollout": 0,
    "env_id": "e",
    "task_id": "t",
    "seed": 0,
    "agents": ["left", "right"],
    "node": decision(
        ["left", "right"],
        joint_action(
            ["left", "right"], 1.0, child=decision(["right"], joint_action(["right"], 0.5))
        ),
    ),
}


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_collection_becomes_a_conversation_an_agent(tmp_path):
    source, out = tmp_path / "e.jsonl", tmp_path / "c.jsonl"
    collect(env_id=ENV_ID, actor=Tokens(), out=source, token_ids=True, tasks=2)
    result = export(source, out)
    assert (result.episodes, result.conversations, result.left_out) == (2, 4, 0)
    lines = read(out)
    assert [(c["episode"], c["task_id"], c["agent"]) for c in lines] == [
        ("0", "train/0", "left"),
        ("0", "train/0", "right"),
        ("1", "train/1", "left"),
        ("1", "train/1", "right"),
    ]
    right = lines[3]
    assert right["env_id"] == ENV_ID
    assert (right["reward"], right["team_reward"], right["solved"]) == (0.0, 1.0, False)
    assert right["messages"] == [
        {"role": "user", "content": "1"},
        {"role": "assistant", "content": "?"},
    ] * 2  # fmt: skip
    assert right["turns"][0] == {
        "reward": 0.0,
        "components": {"tests": 0.0},
        "finish_reason": "length",
        "prompt_ids": [1, 1],
        "token_ids": [5, 0],
        "logprobs": [-0.5, -0.25],
    }


def test_without_token_ids_in_the_file_there_are_none(tmp_path):
    collect(env_id=ENV_ID, actor=Tokens(), out=tmp_path / "e.jsonl", tasks=1)
    export(tmp_path / "e.jsonl", tmp_path / "c.jsonl")
    turn = read(tmp_path / "c.jsonl")[0]["turns"][0]
    assert set(turn) == {"reward", "components", "finish_reason"}


@pytest.mark.parametrize("token_ids", [False, True])
def test_every_line_of_play_of_a_run_is_an_episode(tmp_path, token_ids):
    mlrl_learners.train(
        env_id=ENV_ID,
        learner=Tokens(),
        iterations=2,
        run_dir=tmp_path / "run",
        rollout=RolloutConfig(num_samples=2),
        tasks_per_iteration=2,
        token_ids=token_ids,
        progress=False,
    )
    result = export(tmp_path / "run", tmp_path / "c.jsonl")
    # The second joint action solves the task at once, the first one leads to a second turn.
    assert result.episodes == 2 * 2 * 3
    lines = read(tmp_path / "c.jsonl")
    assert [c["episode"] for c in lines[:6:2]] == ["1/0/0", "1/0/1", "1/0/2"]
    assert [c["solved"] for c in lines[:6:2]] == [False, True, True]
    assert [c["reward"] for c in lines[1:6:2]] == [0.0, 1.0, 1.0]
    assert [c["team_reward"] for c in lines[:6:2]] == [1.0, 1.5, 1.0]
    assert [len(c["messages"]) for c in lines[:6:2]] == [4, 4, 2]
    assert ("token_ids" in lines[0]["turns"][0]) is token_ids
    if token_ids:
        assert lines[5]["turns"][0]["token_ids"] == [5, 1]
        assert lines[5]["turns"][0]["prompt_ids"][0] == 1


def test_who_left_early_has_a_conversation_as_long_as_it_played(tmp_path):
    (tmp_path / "e.jsonl").write_text(json.dumps(LEFT_EARLY) + "\n")
    assert export(tmp_path / "e.jsonl", tmp_path / "c.jsonl").episodes == 1
    left, right = read(tmp_path / "c.jsonl")
    assert [(c["agent"], c["reward"], len(c["turns"])) for c in (left, right)] == [
        ("left", 1.0, 1),
        ("right", 1.5, 2),
    ]
    assert left["team_reward"] == 1.25


def test_joint_actions_that_nobody_walked_further_are_no_episodes(tmp_path, capsys):
    mlrl_learners.train(
        env_id=ENV_ID,
        learner=Tokens(wrong_below=3),
        iterations=1,
        run_dir=tmp_path / "run",
        rollout=RolloutConfig(num_samples=4, branching="chain"),
        tasks_per_iteration=1,
        progress=False,
    )
    # Of three joint actions that do not solve the task one is walked further, to four ends.
    result = export(tmp_path / "run", tmp_path / "c.jsonl")
    assert (result.episodes, result.unfinished) == (1 + 4, 2)
    lengths = [len(c["turns"]) for c in read(tmp_path / "c.jsonl")[::2]]
    assert sorted(lengths) == [1, 2, 2, 2, 2]
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "d.jsonl")]) == 0
    assert "left out 2 branches that a chain did not follow to the end" in capsys.readouterr().out


def test_token_ids_are_a_key_of_the_configuration(tmp_path, student):
    config = tmp_path / "run.yaml"
    config.write_text(f"env: {{id: {ENV_ID}}}\nlearner: {{name: {student}}}\n")
    words = ["train", str(config), "--run-dir", str(tmp_path / "run"), "--train.iterations", "1"]
    assert main([*words, "--logging.token_ids", "true"]) == 0
    export(tmp_path / "run", tmp_path / "c.jsonl")
    assert read(tmp_path / "c.jsonl")[0]["turns"][0]["token_ids"] == []


def test_a_run_and_its_export_agree_on_what_was_said(tmp_path):
    mlrl_learners.train(
        env_id=ENV_ID, learner=Tokens(), iterations=1, run_dir=tmp_path / "run", progress=False
    )
    export(tmp_path / "run", tmp_path / "c.jsonl")
    for line in read(tmp_path / "c.jsonl"):
        for asked, answered in zip(line["messages"][::2], line["messages"][1::2], strict=True):
            assert answered["content"] in (str(int(asked["content"]) + 1), "?")


def test_episodes_that_earned_too_little_are_left_out(tmp_path):
    actor = ScriptedActor(lambda agent, text: "1")  # right in task 0 alone
    collect(env_id=ENV_ID, actor=actor, out=tmp_path / "e.jsonl")
    result = export(tmp_path / "e.jsonl", tmp_path / "c.jsonl", filter_reward=0.5)
    assert (result.episodes, result.left_out) == (1, 3)
    assert {c["task_id"] for c in read(tmp_path / "c.jsonl")} == {"train/0"}


def test_what_mlrl_evaluate_keeps_can_be_exported(tmp_path, capsys):
    source, out = tmp_path / "e.jsonl", tmp_path / "c.jsonl"
    words = ["evaluate", ENV_ID, "--actor", "random", "--episodes", str(source), "--token-ids"]
    assert main([*words, "--tasks", "2"]) == 0
    capsys.readouterr()
    assert main(["export", str(source), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["conversations"] == 4
    assert read(out)[0]["turns"][0]["token_ids"] == []  # random text has no tokens
    assert main(["export", str(source), "--out", str(out)]) == 2
    assert "is there already" in capsys.readouterr().err


def test_a_torn_last_line_is_left_out_and_any_other_is_named(tmp_path):
    source, out = tmp_path / "e.jsonl", tmp_path / "c.jsonl"
    collect(env_id=ENV_ID, actor=Tokens(), out=source, tasks=2)
    whole = source.read_text()
    source.write_text(whole[:-20])
    assert export(source, out).episodes == 1
    out.unlink()
    for broken in ("{\n", "3\n", '{"turns": []}\n'):
        source.write_text(broken + whole)
        with pytest.raises(ConfigError, match=r"e\.jsonl:1 is no episode"):
            export(source, out)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["e.jsonl"]


def test_a_source_without_episodes_and_a_file_that_is_there_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="no episodes in"):
        export(tmp_path, tmp_path / "c.jsonl")
    collect(env_id=ENV_ID, actor=Tokens(), out=tmp_path / "e.jsonl", tasks=1)
    with pytest.raises(RunDirError, match="is there already"):
        export(tmp_path / "e.jsonl", tmp_path / "e.jsonl")


def test_a_packed_file_is_a_mistake(tmp_path):
    packed = tmp_path / "x.episodes.jsonl.gz"
    packed.write_bytes(gzip.compress(b"{}\n"))
    with pytest.raises(ConfigError, match="is no text; unpack it first"):
        export(packed, tmp_path / "out.jsonl")


@pytest.mark.slow
def test_a_large_file_is_never_in_memory(tmp_path):
    source = tmp_path / "e.jsonl"
    collect(env_id=ENV_ID, actor=Tokens(), out=source, tasks=1, token_ids=True)
    line = json.loads(source.read_text())
    line["turns"] *= 20
    text = json.dumps(line) + "\n"
    source.write_text(text * 1000)
    tracemalloc.start()
    export(source, tmp_path / "c.jsonl")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * len(text) * 1000


def test_team_rewards_are_those_of_the_evaluation(tmp_path):
    result = evaluate(env_id=ENV_ID, actor=Tokens(), tasks=2)
    collect(env_id=ENV_ID, actor=Tokens(), out=tmp_path / "e.jsonl", split="eval", tasks=2)
    export(tmp_path / "e.jsonl", tmp_path / "c.jsonl")
    by_task = {c["task_id"]: c["team_reward"] for c in read(tmp_path / "c.jsonl")}
    assert by_task == {task: values[0] for task, values in result.task_returns.items()}
