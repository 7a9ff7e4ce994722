"""Endpoints against `transformers serve`, which speaks OpenAI's protocol for real."""

import json
import os
import runpy
import socket
import string
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

import mlrl_envs
from mlrl_envs.errors import EndpointError
from mlrl_envs.models import Endpoint
from mlrl_learners.actors import EndpointActor, WorkflowActor
from mlrl_learners.cli import main
from mlrl_learners.evaluation.evaluate import evaluate
from mlrl_learners.policies.tiny import tiny_model

pytest.importorskip("fastapi", reason="needs pip install 'transformers[serving]'")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[3] / "examples"
START_SECONDS = 240
SERVE = "from transformers.cli.transformers import main; main()"
TEXTS = {"setup": "A fox waits in the snow.", "story": "The fox waited all night."}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A tiny random model on a real server: its base URL and the model's name there."""
    folder = tmp_path_factory.mktemp("served")
    model, tokenizer = tiny_model()
    letters = set(tokenizer(string.ascii_letters)["input_ids"])
    silent = [number for number in range(len(tokenizer)) if number not in letters]
    model.generation_config.suppress_tokens = silent  # its likeliest words are line breaks
    model.generation_config.do_sample = True  # the server samples only where the model says so
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    port = _free_port()
    words = ["serve", str(folder / "model"), "--port", str(port), "--device", "cpu"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-c", SERVE, *words, "--host", "127.0.0.1"],
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            stdout=log,
            stderr=log,
        )
        try:
            _wait_until_up(server, f"http://127.0.0.1:{port}/health", folder / "log")
            url = f"http://127.0.0.1:{port}/v1"
            yield SimpleNamespace(base_url=url, model=str(folder / "model"))
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait_until_up(server, url, log):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310  our own server
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"the server did not start:\n{log.read_text('utf-8', 'replace')[-2000:]}")


def at(served, **options):
    return Endpoint(served.base_url, served.model, **{"max_tokens": 8, "max_retries": 0, **options})


def texts(answers):
    return [{agent: [c.text for c in group] for agent, group in each.items()} for each in answers]


def test_an_actor_answers_every_agent_and_counts_tokens(served):
    nodes = [TEXTS, {agent: text[::-1] for agent, text in TEXTS.items()}]
    answers = EndpointActor(at(served, temperature=1.0)).act(nodes, num_samples=3)
    completions = [c for each in answers for group in each.values() for c in group]
    assert len(completions) == 12
    assert len({c.text for c in completions}) > 6
    for completion in completions:
        assert 1 <= completion.cost.completion_tokens <= 8
        assert completion.cost.prompt_tokens > 20
        is_cut = completion.cost.completion_tokens == 8
        assert completion.finish_reason == ("length" if is_cut else "stop")
        assert completion.text.isalpha()


def test_greedy_answers_stay_the_same(served):
    actor = EndpointActor(at(served, temperature=1.0))
    first, second = (texts(actor.act([TEXTS], num_samples=2, explore=False)) for _ in range(2))
    assert first == second
    assert first[0]["story"][0] == first[0]["story"][1]


def test_a_sampling_seed_brings_the_same_answers_again(served):
    # This server seeds the whole process, so that only one question at a time is reproducible.
    actor = EndpointActor(at(served, temperature=1.0, max_concurrency=1))
    drawn = []
    for seed in (5, 5, 6):
        with actor.sampling_seed(seed):
            drawn.append(texts(actor.act([TEXTS], num_samples=2)))
    assert drawn[0] == drawn[1] != drawn[2]


def expert_env(endpoint):
    return mlrl_envs.make("mlrl/story-v1", feedback="expert_edits", expert=endpoint, max_turns=2)


def test_an_expert_advises_between_turns_and_is_not_asked_again(served):
    env = expert_env(at(served))
    env.reset(seed=0)
    observations, *_, infos = env.step(TEXTS)
    for agent in env.possible_agents:
        words = infos[agent]["diagnostics"]["expert"]
        assert words
        assert f"An expert suggests these edits:\n{words}" in observations[agent]
    assert all(text in env.state() for text in observations.values())


def test_a_batch_is_advised_like_one_at_a_time(served):
    alone = expert_env(at(served))
    alone.reset(seed=0)
    expected, *_ = alone.step(TEXTS)
    vec = mlrl_envs.make_vec(
        "mlrl/story-v1", 4, feedback="expert_edits", expert=at(served), max_turns=2
    )
    vec.reset(seed=[0] * 4)
    observations, *_ = vec.step([TEXTS] * 4)
    assert observations == [expected] * 4


def test_episodes_with_an_expert_and_a_discussion_are_evaluated(served):
    result = evaluate(
        env_id="mlrl/humaneval-v1",
        split="sample",
        env_options={
            "feedback": "expert_edits",
            "expert": {"base_url": served.base_url, "model": served.model, "max_tokens": 8},
        },
        actor=WorkflowActor(EndpointActor(at(served)), "discussion"),
        tasks=1,
    )
    (episode,) = result.episodes
    assert len(episode.turns) == 2
    assert "An expert suggests" in episode.turns[1].observations["main"]
    assert result.tokens > 8
    assert result.prompt_tokens > 1000


def test_the_command_line_plays_an_endpoint(served, capsys):
    word = f"pipeline:endpoint:{served.model}@{served.base_url}"
    words = ["evaluate", "mlrl/story-v1", "--actor", word, "--tasks", "1"]
    assert main([*words, "--learner.max_tokens", "4"]) == 0
    assert " written, " in capsys.readouterr().out


def test_the_plain_loop_of_the_documentation_plays(served, monkeypatch, capsys):
    words = ["openai_loop.py", served.base_url, served.model, "--episodes", "2", "--tokens", "4"]
    monkeypatch.setattr(sys, "argv", words)
    runpy.run_path(str(EXAMPLES / "openai_loop.py"), run_name="__main__")
    assert "episode 1: return " in capsys.readouterr().out


def test_a_wrong_model_and_a_wrong_path_are_named(served, dead_url):
    for endpoint, cause in (
        (Endpoint(served.base_url, "no-such-model", max_retries=0), "check the model's name"),
        (Endpoint(served.base_url.removesuffix("/v1"), served.model), "status 404.*/v1"),
        (Endpoint(dead_url, served.model, max_retries=0), "cannot connect"),
    ):
        with pytest.raises(EndpointError, match=cause) as caught:
            endpoint.chat([{"role": "user", "content": "hello"}])
        assert "\n" not in str(caught.value)


def test_a_step_that_an_expert_fails_changes_nothing(served):
    env = expert_env(Endpoint(served.base_url, "no-such-model", max_retries=0))
    env.reset(seed=0)
    before = env.state()
    with pytest.raises(EndpointError):
        env.step(TEXTS)
    assert env.state() == before


def test_a_suite_is_played_within_its_budget_and_resumed(served, tmp_path, capsys):
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "{name: served, version: 0, summary: a story, seeds: [0], budget: {tokens: 8},\n"
        " entries: [{env: mlrl/story-v1, split: sample, tasks: 2}]}\n"
    )
    actor = f"endpoint:{served.model}@{served.base_url}"
    words = ["bench", "run", "--suite", str(suite), "--actor", actor, "--run-dir", str(tmp_path)]
    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["complete"]
    assert 0 < result["overall"]["tokens"] <= 2 * 2 * 8
    episodes = (tmp_path / "episodes.jsonl").read_text()
    assert main(words) == 0
    assert (tmp_path / "episodes.jsonl").read_text() == episodes
