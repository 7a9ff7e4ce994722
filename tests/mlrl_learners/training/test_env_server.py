"""Runs on environment servers equal local ones, and change places where fingerprints are equal."""

import json

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed")
pytest.importorskip("grpc_health", reason="grpcio-health-checking is not installed")
pytest.importorskip("grpc_reflection", reason="grpcio-reflection is not installed")

import asyncio
import threading

import mlrl_envs
import mlrl_learners
from mlrl_envs.serve import EnvServer, ServerConfig
from mlrl_learners.cli import main
from mlrl_learners.errors import RunDirError
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.types import RolloutConfig

FILES = ("episodes.jsonl", "evaluations.jsonl")


class Counting(ScriptedActor):
    """A scripted learner whose answers depend on the number of updates."""

    def __init__(self):
        super().__init__(lambda agent, text: f"{agent} {self.updates} {len(text)}")
        self.updates = 0

    def update(self, rollouts):
        self.updates += 1
        return {"lessons": float(len(rollouts))}

    def save(self, path):
        (path / "updates").write_text(str(self.updates))

    def load(self, path):
        self.updates = int((path / "updates").read_text())


def _short_stories(max_turns=1):
    """An environment without splits."""
    return mlrl_envs.make("mlrl/story-v1", prompts=["A fox:", "A sea:"], max_turns=max_turns)


@pytest.fixture(scope="module")
def address():
    ended, started, found = asyncio.Event(), threading.Event(), {}

    async def serve():
        mlrl_envs.register("tests/short-stories-v0", _short_stories)
        ids = ["mlrl/story-v1", "mlrl/kuhn-v0", "tests/short-stories-v0"]
        server = EnvServer(ServerConfig(ids=ids, sandbox=False, drain_seconds=1))
        await server.start()
        found.update(loop=asyncio.get_running_loop(), address=f"127.0.0.1:{server.port}")
        started.set()
        await ended.wait()
        await server.stop()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(120)
    yield found["address"]
    found["loop"].call_soon_threadsafe(ended.set)
    thread.join(60)


def _train(run_dir, server, iterations, *, resume=False):
    return mlrl_learners.train(
        env_id="mlrl/story-v1",
        env_options={"max_turns": 2},
        env_server=server,
        learner=Counting(),
        iterations=iterations,
        eval_every=2,
        eval_tasks=3,
        run_dir=run_dir,
        resume=resume,
        progress=False,
    )


def _records(run_dir):
    return [_lines(run_dir / name) for name in FILES]


def _lines(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in line.items() if "seconds" not in k} for line in lines]


def test_remote_run_equals_a_local_one(tmp_path, address):
    _train(tmp_path / "local", None, 3)
    _train(tmp_path / "remote", address, 3)
    episodes = [(tmp_path / name / "episodes.jsonl").read_bytes() for name in ("local", "remote")]
    assert episodes[0] == episodes[1]
    assert _records(tmp_path / "local") == _records(tmp_path / "remote")


def test_resumed_run_changes_places(tmp_path, address):
    _train(tmp_path / "local", None, 4)
    for iterations, server in ((1, None), (2, address), (3, None), (4, [address])):
        _train(tmp_path / "moved", server, iterations, resume=iterations > 1)
    assert _records(tmp_path / "local") == _records(tmp_path / "moved")


def test_environment_without_splits_is_evaluated_at_a_server(address):
    actor = ScriptedActor(lambda agent, text: f"{agent} read {len(text)} letters")
    here, there = (
        mlrl_learners.evaluate(env_id="tests/short-stories-v0", env_server=server, actor=actor)
        for server in (None, address)
    )
    assert (here.split, there.split) == (None, None)
    assert there.episodes == here.episodes


def test_episodes_are_collected_at_a_server(tmp_path, address, monkeypatch):
    local, remote = tmp_path / "local.jsonl", tmp_path / "remote.jsonl"
    words = ["collect", "tests/short-stories-v0", "--actor", "random", "--tasks", "2"]
    assert main([*words, "--out", str(local)]) == 0
    made = []
    make = mlrl_envs.make
    monkeypatch.setattr(
        mlrl_envs, "make", lambda place, **o: made.append(place) or make(place, **o)
    )
    assert main([*words, "--env.server", address, "--out", str(remote)]) == 0
    assert all(place.startswith(f"remote://{address}/") for place in made)
    assert _lines(local) == _lines(remote)


def test_a_script_of_a_game_at_a_server_is_refused_with_the_fix(address, capsys):
    words = ["play", f"remote://{address}/mlrl/kuhn-v0", "--actor", "script:nash"]
    assert main(words) == 2
    assert "script:nash needs the game in this process" in capsys.readouterr().err


class InGroups(ScriptedActor):
    """Plays each third of the trees apart."""

    parallel_calls = 3

    def __init__(self):
        super().__init__(lambda agent, text: f"{agent} read {len(text)} letters")

    def players(self, asked, num_samples):
        return [self] * 3


def test_groups_that_step_in_threads_equal_local_ones(address):
    def collect(env_id):
        return collect_rollouts(
            [mlrl_envs.make(env_id, max_turns=3) for _ in range(9)],
            InGroups(),
            RolloutConfig(num_samples=2),
            task_options=[{"task_index": number} for number in range(9)],
            seeds=list(range(9)),
        )

    assert collect(f"remote://{address}/mlrl/story-v1") == collect("mlrl/story-v1")


def test_run_does_not_move_to_another_scorer(tmp_path, address):
    _train(tmp_path / "run", None, 1)
    file = tmp_path / "run" / "environment.json"
    environment = json.loads(file.read_text())
    environment["env"]["scorer"] = "that of an earlier version"
    file.write_text(json.dumps(environment))
    with pytest.raises(RunDirError, match=r"cannot go on with another env\.server"):
        _train(tmp_path / "run", address, 2, resume=True)
