"""Weights of a server that samples are those of the trainer, by the protocol of each program."""

import copy

import pytest
import torch

import mlrl_learners
from mlrl_envs.errors import EndpointError
from mlrl_envs.models import Endpoint, load_weights
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import Policy
from mlrl_learners.testing.toy_model import toy_model
from tests.mlrl_learners.algorithms.stand_in_server import StandInServer

OPTIONS = {
    "sampling": {"max_new_tokens": 1, "temperature": 1.0, "top_p": 1.0},
    "compute": {"device": "cpu"},
    "optimizer": {"lr": 1e-2},
    "group": {"size": 8},
    "importance": {"correction": "token_truncate"},
}
ADAPTER = {"lora": {"rank": 2}}


@pytest.fixture(scope="module")
def trained():
    return toy_model(0)


@pytest.fixture
def server(trained):
    model = copy.deepcopy(trained[0])
    with torch.no_grad():
        model.lm_head.weight.mul_(-1.0)  # far from the trained weights
    with StandInServer(model, trained[1], Policy(*trained).eos_ids) as server:
        yield server


@pytest.fixture
def make(trained, server, tmp_path):
    def make_learner(update, agents=("left",), model="m", **options):
        sampler = {
            "endpoint": server.url,
            "model": model,
            "max_retries": 0,
            "update": update,
            "weights_folder": str(tmp_path / "weights"),
        }
        merged = merge_options(OPTIONS, {"sampler": sampler}, options)
        return mlrl_learners.make(
            "mareinforce", agents=agents, model=copy.deepcopy(trained), seed=0, **merged
        )

    return make_learner


def pay(actions, agent):
    return len(actions[agent]) / 10


@pytest.mark.parametrize(
    ("update", "paths"),
    [
        ("vllm", ["/collective_rpc", "/reset_prefix_cache"]),
        ("sglang", ["/update_weights_from_disk"]),
    ],
)
def test_the_server_samples_from_the_weights_of_the_last_update(update, paths, make, server, toy):
    learner = make(update)
    for number in (1, 2, 3):
        metrics = learner.update(toy.play(learner, reward=pay))
        assert metrics["left/kl_sampler"] == pytest.approx(0.0, abs=1e-6)
        assert metrics["left/importance_cut"] == 0.0
        assert [path for path, _ in server.calls] == number * paths
        if update == "sglang":
            assert metrics["sampler/newest_weights"] == number


def test_without_updates_the_server_keeps_its_weights(make, server, toy):
    learner = make("none", sampler={"weights_folder": ""})
    metrics = learner.update(toy.play(learner, reward=pay))
    assert server.calls == []
    assert metrics["left/kl_sampler"] > 0.01


def test_weights_are_sent_once_for_each_update(make, server):
    learner = make("vllm")
    for _ in range(3):
        learner.act([{"left": "one"}])
    assert len(server.calls) == 2
    learner.begin_update()
    learner.act([{"left": "one"}])
    assert len(server.calls) == 4


def test_a_loaded_checkpoint_is_sent_again(make, server, tmp_path):
    learner = make("vllm")
    learner.act([{"left": "one"}])
    learner.save(tmp_path / "saved")
    learner.load(tmp_path / "saved")
    learner.act([{"left": "one"}])
    assert len(server.calls) == 4


def test_every_version_has_a_folder_of_its_own_and_two_are_kept(make, server, tmp_path):
    for learner in (make("vllm"), make("vllm")):  # the second continues the numbers of the first
        for _ in range(2):
            learner.begin_update()
            learner.act([{"left": "one"}])
    sent = [request["kwargs"]["weights_path"] for path, request in server.calls if "rpc" in path]
    assert len(set(sent)) == len(sent) == 4
    kept = sorted(path.name for path in (tmp_path / "weights" / "m").iterdir())
    assert kept == ["version_3", "version_4"]


def test_an_adapter_is_loaded_in_place(trained, make, server, toy):
    learner = make("vllm", **ADAPTER)
    server.base = copy.deepcopy(trained[0])
    metrics = learner.update(toy.play(learner, reward=pay))
    metrics = learner.update(toy.play(learner, reward=pay))
    assert [path for path, _ in server.calls] == 2 * ["/v1/load_lora_adapter"]
    assert metrics["left/kl_sampler"] == pytest.approx(0.0, abs=1e-6)


def test_a_server_that_refuses_weights_fails_the_collection_in_one_line(make, server):
    server.broken = True
    with pytest.raises(EndpointError, match="no such folder; check that the server") as caught:
        make("sglang").act([{"left": "one"}])
    assert "\n" not in str(caught.value)


def test_a_server_without_the_endpoint_is_an_error(server, tmp_path):
    with pytest.raises(EndpointError, match="status 404"):
        load_weights(Endpoint(server.url, "m", max_retries=0), "mlrl", tmp_path, 1)


@pytest.mark.parametrize(
    ("update", "options", "message"),
    [
        ("vllm", {"sampler": {"weights_folder": ""}}, "update and weights_folder belong together"),
        ("none", {}, "update and weights_folder belong together"),
        ("ollama", {}, "update"),
        ("vllm", {"sampler": {"endpoint": "", "model": ""}}, "an empty sampler.endpoint"),
        ("vllm", {"agents": ("left", "right")}, "agents with different weights"),
        (
            "sglang",
            {"agents": ("left", "right"), "model": {"left": "a", "right": "b"}},
            "loads one whole model, but sampler.model names a, b",
        ),
    ],
)
def test_options_that_cannot_work_are_refused(update, options, message, make):
    with pytest.raises(ConfigError, match=message) as caught:
        make(update, **options)
    assert "\n" not in str(caught.value)
