"""Both modules, loaded by `evaluate` itself in a fresh process that cannot reach any network."""

import json
import os
import subprocess
import sys

import pytest

from mlrl_envs.errors import UnknownNameError
from mlrl_learners.evaluation.evaluate import evaluate
from mlrl_learners.metric_modules import METRICS, metric_path
from mlrl_learners.runs.records import episode_record
from mlrl_learners.testing import ScriptedActor

LOAD = """
import json, socket, sys

def refuse(*_, **__):
    raise OSError("this process has no network")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
import evaluate
from mlrl_learners.metric_modules import metric_path

lines = open(sys.argv[1]).read().splitlines()
pass_at_k, team_return = map(evaluate.load, map(metric_path, ("pass_at_k", "team_return")))
both = evaluate.combine([pass_at_k, team_return])
pass_at_k.add_batch(predictions=lines)
print(json.dumps([
    pass_at_k.compute(k=[1, 3, 9]),
    team_return.compute(predictions=lines, seed=0),
    both.compute(predictions=lines),
]))
"""


@pytest.fixture
def result(addition_env):
    return evaluate(env_id=addition_env, actor=ScriptedActor(sometimes_right), samples=3)


def sometimes_right(agent, text):
    return str(int(text) + 1) if agent == "left" or int(text) % 2 == 0 else "?"


def test_both_modules_load_without_a_network_and_agree_with_the_evaluation(result, tmp_path):
    pytest.importorskip("evaluate", reason="needs pip install 'mlrl[bench]'")
    file = tmp_path / "episodes.jsonl"
    file.write_text("".join(json.dumps(episode_record(e)) + "\n" for e in result.episodes))
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(file)],
        env={**os.environ, "HF_HOME": str(tmp_path / "hf")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    chances, team, both = json.loads(done.stdout.splitlines()[-1])
    assert chances == {"pass@1": result.pass_at_k[1], "pass@3": result.pass_at_k[3]}
    assert team["mean_return"] == result.mean_return
    assert (team["mean_return_low"], team["mean_return_high"]) == result.interval
    assert team["solved_rate"] == 0.5
    assert team["component/tests"] == result.components["tests"]
    assert (team["agent/left"], team["agent/right"]) == (1.5, 0.5)
    assert both == {"pass@1": 0.5, **team}


def test_where_the_modules_are_is_printed():
    command = [sys.executable, "-m", "mlrl_learners.metric_modules"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == [f"{name}  {metric_path(name)}" for name in METRICS]


def test_an_unknown_module_is_named_with_the_nearest():
    with pytest.raises(UnknownNameError, match="'pass_at_k'"):
        metric_path("pass_at_n")
