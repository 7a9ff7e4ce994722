"""Servers as processes: killed, stopped and drained, with the command that starts them."""

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import mlrl_envs
from mlrl_envs.serve import Connection

TEXTS = {"setup": "A fox waits.", "story": "The fox waited for the snow."}
ROOT = Path(__file__).parents[3]
QUICK = Connection(deadline_seconds=60, retry_seconds=5, retries=2)


@pytest.fixture
def start_process():
    running = []

    def start(*words, ids=("mlrl/story-v1",), imports=()):
        program = [sys.executable, "-m", "mlrl_learners", "serve"]
        command = [*program, *imports, "env", *ids, *words]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        running.append(process)
        process.address = process.stdout.readline().removeprefix("remote://").partition("/")[0]
        return process

    yield start
    for process in running:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _begin(address, **options):
    env = mlrl_envs.make(f"remote://{address}/mlrl/story-v1", max_turns=3, **options)
    local = mlrl_envs.make("mlrl/story-v1", max_turns=3)
    assert env.reset(seed=1) == local.reset(seed=1)
    assert env.step(TEXTS) == local.step(TEXTS)
    return env, local


def test_killed_server_that_comes_back_goes_on(start_process):
    port = str(_free_port())
    first = start_process("--no-sandbox", "--port", port)
    env, local = _begin(first.address)
    first.kill()
    first.wait()
    start_process("--no-sandbox", "--port", port)
    assert env.step(TEXTS) == local.step(TEXTS)


@pytest.mark.slow
def test_stopped_server_is_left_for_another_one(start_process):
    one, other = (start_process("--no-sandbox", "--port", "0") for _ in range(2))
    env, local = _begin(f"{one.address},{other.address}", connection=QUICK)
    held = env._episode.session.address
    stopped = one if one.address == held else other
    stopped.send_signal(signal.SIGSTOP)
    assert env.step(TEXTS) == local.step(TEXTS)
    assert env._episode.session.address != held


SLOW_ENV = """
import sys, time
import mlrl_envs
from mlrl_envs.sandbox import Outcome

class Sandbox:
    def run_many(self, programs):
        print("started", file=sys.stderr, flush=True)
        time.sleep(3)
        return [Outcome("failed", 1, 3) for _ in programs]

mlrl_envs.register("tests/slow-v0", lambda sandbox=None: mlrl_envs.make(
    "mlrl/humaneval-v1", split="sample", num_aux=0, sandbox=Sandbox()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_server_that_is_lost_within_a_step_is_left_for_another_one(start_process, tmp_path, sent):
    code = tmp_path / "slow_env.py"
    code.write_text(SLOW_ENV)
    how = {"ids": ("tests/slow-v0",), "imports": ("--import", str(code))}
    servers = [start_process("--no-sandbox", "--port", "0", **how) for _ in range(2)]
    connection = Connection(deadline_seconds=12, retry_seconds=60)
    places = ",".join(each.address for each in servers)
    env = mlrl_envs.make(f"remote://{places}/tests/slow-v0", connection=connection)
    local = mlrl_envs.make("mlrl/humaneval-v1", split="sample", num_aux=0)
    assert env.reset(seed=1)[0] == local.reset(seed=1)[0]
    held = next(each for each in servers if each.address == env._episode.session.address)
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(env.step, local.reference_actions())
        assert any("started" in line for line in held.stderr)
        held.send_signal(sent)
        _, rewards, *_ = step.result()
    assert env._episode.session.address != held.address
    assert set(rewards) == {"main"}


def test_terminated_server_stops_serving_and_ends(start_process):
    process = start_process("--port", "0")
    _begin(process.address)
    with grpc.insecure_channel(process.address) as channel:
        reply = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    assert reply.status == health_pb2.HealthCheckResponse.SERVING  # its sandbox runs programs
    process.terminate()
    assert process.wait(60) == 0


def test_mistakes_end_the_command_with_one_line():
    command = [sys.executable, "-m", "mlrl_learners", "serve", "env"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for words, text in (
        (["mlrl/storry-v1"], "did you mean 'mlrl/story-v1'?"),
        (["mlrl/story-v1", "--public"], "a public server needs --token-file"),
    ):
        done = subprocess.run(
            [*command, *words], capture_output=True, text=True, env=environment, check=False
        )
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert text in done.stderr


def _memory(process):
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_sessions_that_are_never_closed_leave_memory_and_descriptors_flat(start_process):
    process = start_process("--no-sandbox", "--port", "0", "--max-sessions", "2000")
    envs = mlrl_envs.make_vec(f"remote://{process.address}/mlrl/story-v1", 1_000).envs
    figures = []
    for number in range(100):
        for env in envs:
            if env._episode is not None:
                env._episode.session.owned = False  # a client that forgets to close
        mlrl_envs.reset_many(envs, range(1_000), [None] * 1_000)
        if number % 10 == 9:
            descriptors = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
            figures.append((_memory(process), descriptors))
    assert figures[-1][0] < figures[1][0] + 40
    assert figures[-1][1] <= figures[1][1] + 2


CLIENT = """
import sys, mlrl_envs
seeds = range(int(sys.argv[2]), int(sys.argv[2]) + 100)
envs = mlrl_envs.make_vec(f"remote://{sys.argv[1]}/mlrl/story-v1", 100, max_turns=2).envs
twins = mlrl_envs.make_vec("mlrl/story-v1", 100, max_turns=2).envs
assert mlrl_envs.reset_many(envs, seeds, [None] * 100) == mlrl_envs.reset_many(
    twins, seeds, [None] * 100)
for turn in range(2):
    actions = [{agent: f"{agent} {seed}" for agent in ("setup", "story")} for seed in seeds]
    assert mlrl_envs.step_many(envs, actions) == mlrl_envs.step_many(twins, actions)
"""


@pytest.mark.slow
def test_ten_processes_play_a_thousand_sessions(start_process):
    process = start_process("--no-sandbox", "--port", "0")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", CLIENT, process.address, str(number * 1_000)], env=environment
        )
        for number in range(10)
    ]
    assert [client.wait(280) for client in clients] == [0] * 10


def test_nothing_heavy_is_imported_without_a_server():
    code = (
        "import sys, mlrl_envs, mlrl_envs.serve, mlrl_learners.config.run;"
        "sys.exit(', '.join(n for n in ('grpc', 'google.protobuf', 'torch') if n in sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stderr.strip() == ""
