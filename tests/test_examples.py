"""The scripts of `examples/` do what the documentation says of them, on a tiny random model.

Those that need other people's trainers run in this interpreter where they are installed (they come
with the extra `dev`), or in the one that MLRL_PEERS_PYTHON names, which needs mlrl's own
requirements, too.
"""

import ast
import asyncio
import importlib.util
import os
import re
import runpy
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import mlrl_envs

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    "HF_HUB_OFFLINE": "1",
    "WANDB_MODE": "disabled",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny random model in a folder."""
    tiny = pytest.importorskip("mlrl_learners.policies.tiny", reason="needs torch")
    folder = str(tmp_path_factory.mktemp("tiny"))
    for part in tiny.tiny_model():
        part.save_pretrained(folder)
    return folder


def interpreter(package):
    """Return a Python that can import a package, or skip."""
    if importlib.util.find_spec(package):
        return sys.executable
    other = os.environ.get("MLRL_PEERS_PYTHON")
    code = f"import {package}, mlrl_learners.policies.tiny"
    if other and not subprocess.run([other, "-c", code], env=ENVIRONMENT, check=False).returncode:
        return other
    pytest.skip(f"needs {package}: pip install it, or name a Python by MLRL_PEERS_PYTHON")
    return ""


def run(package, script, *words):
    done = subprocess.run(
        [interpreter(package), str(EXAMPLES / script), *words],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def weights(folder):
    return (Path(folder) / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_trls_grpo_trains_one_agent(model, tmp_path):
    words = ["--steps", "2", "--tokens", "16", "--out", str(tmp_path)]
    printed = run("trl", "trl_grpo.py", model, *words)
    rewards = [float(text) for text in re.findall(r"step \d: reward (\S+)", printed)]
    assert len(rewards) == 2
    assert all(0 < reward <= 1 for reward in rewards)
    assert weights(tmp_path) != weights(model)


@pytest.mark.slow
@pytest.mark.parametrize(("joint_mode", "scored"), [("aligned", 2 * 6), ("cross", 2 * 20)])
def test_comlrls_magrpo_trains_a_team_over_two_turns(model, tmp_path, joint_mode, scored):
    words = ["--tasks", "2", "--tokens", "8", "--joint-mode", joint_mode, "--out", str(tmp_path)]
    printed = run("comlrl", "comlrl_magrpo.py", model, *words)
    assert f"{scored} joint actions were scored" in printed
    for agent in ("setup", "story"):
        assert weights(tmp_path / agent) != weights(model)


def test_a_plain_loop_shows_agents_what_paid_most(chat_server, monkeypatch, capsys):
    pytest.importorskip("openai")

    words = ["openai_loop.py", chat_server.url, "m", "--episodes", "3"]
    monkeypatch.setattr(sys, "argv", words)
    runpy.run_path(str(EXAMPLES / "openai_loop.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["episode 0", "episode 1", "episode 2"]
    texts = [request["messages"][0]["content"] for request in chat_server.requests]
    assert ["For another task this earned" in text for text in texts] == [False] * 2 + [True] * 4


SAID = {
    "quick_start.py": "mean return",
    "custom_reward.py": "return",
    "custom_environment.py": "return",
    "dpo_preferences.py": "return",
    "from_configuration.py": "mean",
    "grpo_math.py": "return",
    "ippo_story.py": "return",
    "magrpo_tldr.py": "return",
    "ppo_code.py": "return",
    "self_play.py": "return",
    "several_environments.py": "kuhn: return",
    "sft_to_ppo.py": "return",
    "sft_world_model.py": "loss",
    "summarise.py": "return",
    "tools.py": "True",
    "translate.py": "return",
    "workflow.py": "return",
}
THIRD_PARTY = {"comlrl_magrpo.py", "openai_loop.py", "trl_grpo.py"}


@pytest.fixture
def play(tmp_path, monkeypatch, capsys):
    """Run an example in an empty folder and return what it prints."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mlrl_envs.registry, "_specs", dict(mlrl_envs.registry._specs))

    def run(script, *words):
        monkeypatch.setattr(sys, "argv", [script, *words])
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("script", SAID)
def test_an_example_runs_on_a_tiny_model(script, play):
    assert SAID[script] in play(script)


def test_the_example_of_a_server_asks_for_its_address(tmp_path):
    script = [sys.executable, str(EXAMPLES / "remote_environment.py")]
    done = subprocess.run(
        script, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("An environment on another machine")


def test_an_environment_on_a_server_is_trained_on(play):
    pytest.importorskip("grpc")
    from mlrl_envs.serve import EnvServer, ServerConfig

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = EnvServer(ServerConfig(ids=["mlrl/story-v1"], sandbox=False, drain_seconds=1))
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(60)
    try:
        assert "return" in play("remote_environment.py", f"127.0.0.1:{server.port}")
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)


def test_two_processes_train_as_one(tmp_path):
    pytest.importorskip("torch")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*torchrun, "--nproc-per-node", "2", str(EXAMPLES / "distributed.py")],
        env=ENVIRONMENT | {"OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "2 processes: return" in done.stdout


def test_every_example_is_tested_and_on_the_page():
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert scripts == {*SAID, *THIRD_PARTY, "distributed.py", "remote_environment.py"}
    page = (ROOT / "docs/examples.md").read_text("utf-8")
    assert all(f"examples/{name}" in page for name in scripts)


def code_lines(path):
    source = path.read_text("utf-8")
    left = set()
    for node in ast.walk(ast.parse(source)):
        has_docstring = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if has_docstring and ast.get_docstring(node) is not None:
            left |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(source.splitlines(), start=1)
    return sum(bool(x.strip()) and x.strip()[0] != "#" and n not in left for n, x in lines)


def test_the_page_tells_how_long_examples_are():
    page = (ROOT / "docs/examples.md").read_text("utf-8")
    rows = re.findall(r"\| `(\S+\.py)`[^|]*\| (\d+) \|", page)
    assert len(rows) == 5
    assert [(name, code_lines(ROOT / name)) for name, _ in rows] == [(n, int(k)) for n, k in rows]
