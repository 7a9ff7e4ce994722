"""Every figure runs with a tiny model, so that none of them rots."""

import importlib.util
import json
import sys
import time
from argparse import Namespace

import pytest
import torch

from benchmarks.perf import scaling, story_curve
from benchmarks.perf.__main__ import FIGURES
from benchmarks.perf.stand_ins import ListDataset, stand_in
from mlrl_learners.engine import sampling
from mlrl_learners.policies import SamplingConfig
from mlrl_learners.types import Completion

SMALL = ["--smoke", "--rounds", "1", "--max-new-tokens", "4"]
QUICK = {
    "network": ["--rounds", "1", "--games", "1"],
    "steps": ["--rounds", "1", "--steps", "2", "--ids", "mlrl/story-v1", "mlrl/tldr-v1"],
    "decoding": [*SMALL, "--prompts", "2", "--samples", "2"],
    "update": [*SMALL, "--prompts", "2", "--samples", "2", "--added-tokens", "5"],
}
GPU = ["--smoke", "--device", "cpu", "--tasks", "2", "--max-new-tokens", "4", "--batches", "1", "2"]
TEAM = ["--smoke", "--max-new-tokens", "4"]
SLOW = {
    "scaling": SMALL,
    "timeline": [*TEAM, "--tasks", "1"],
    "magrpo_step": [*SMALL, "--tasks", "2", "--turns", "2"],
    "ippo_step": [*SMALL, "--tasks", "2"],
    "grpo_step": [*SMALL, "--tasks", "2", "--group-size", "2"],
    "story_curve": [*TEAM, "--steps", "1", "--tasks", "2"],
    "memory": [*TEAM, "--peer", "--agents", "2", "--micro-batch-tokens", "64"],
    "gpu": GPU,
}
PEERS = {
    "memory": "comlrl",
    "gpu": "comlrl",
    "magrpo_step": "comlrl",
    "ippo_step": "comlrl",
    "story_curve": "comlrl",
} | {"grpo_step": "trl"}
LONG = ("memory", "story_curve")
"""Of `SLOW`, those that start several processes with a peer."""
PICTURES = ("scaling", "timeline", "story_curve", "network")


def run(name, arguments, capsys, folder):
    module = importlib.import_module(f"benchmarks.perf.{name}")
    picture = ["--picture", str(folder / f"{name}.svg")] if name in PICTURES else []
    module.main([*arguments, *picture])
    figure = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert figure["figure"] == name
    assert figure["rows"]
    assert all({"what", "unit", "ours"} <= set(row) for row in figure["rows"])
    assert not picture or (folder / f"{name}.svg").stat().st_size > 1000
    return figure


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_figure_runs(name, capsys, tmp_path):
    run(name, QUICK[name], capsys, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in LONG else pytest.mark.slow)
        for name in SLOW
    ],
)
def test_a_figure_of_whole_steps_runs(name, capsys, tmp_path, monkeypatch):
    if name in PEERS:
        pytest.importorskip(PEERS[name], reason="the peer is not installed")
    monkeypatch.setenv("MLRL_PEERS_PYTHON", sys.executable)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    run(name, SLOW[name], capsys, tmp_path)


def test_every_figure_that_is_listed_exists():
    for module, options, minutes in FIGURES.values():
        assert hasattr(importlib.import_module(f"benchmarks.perf.{module}"), "main")
        assert isinstance(options, str)
        assert minutes > 0


def test_the_exponent_is_that_of_a_power():
    assert scaling.exponent({n: 3.0 * n**1.5 for n in (1, 2, 4, 8)}) == 1.5
    assert scaling.exponent(dict.fromkeys((1, 2, 4), 7.0)) == 0.0


def test_a_side_arrives_when_its_last_looks_earn_the_threshold():
    curve = [(0.0, 0.9), (10.0, 0.1), (20.0, 0.8), (30.0, 0.8), (40.0, 0.8), (50.0, 0.8)]
    assert story_curve.arrival(curve, 0.79) == 40.0
    assert story_curve.arrival(curve, 0.6) == 20.0
    assert story_curve.arrival(curve, 0.95) is None


def test_figures_of_a_gpu_say_what_they_had_no_time_for(capsys):
    gpu = importlib.import_module("benchmarks.perf.gpu")
    gpu.main(["--smoke", "--device", "cpu", "--seconds", "0"])
    figure = json.loads(capsys.readouterr().out)
    assert figure["rows"] == []
    assert len(figure["left_out"]) == 6


def test_a_part_of_a_gpus_figures_that_takes_too_long_costs_no_other():
    gpu = importlib.import_module("benchmarks.perf.gpu")
    left_out = {}
    with gpu._at_most(0.05):
        assert gpu._kept("slow", lambda: time.sleep(5) or [{}], left_out) == []
    assert left_out == {"slow": "TimeoutError: took more than 0 s"}
    time.sleep(0.1)  # and nothing is stopped any more


def test_few_tokens_hold_the_probability_of_a_model_of_random_weights(tmp_path):
    parts = importlib.import_module("benchmarks.perf.gpu_parts")
    sizes = {**parts.TINY, "vocab_size": 20_000}
    parts.random_model(tmp_path, sizes)
    policy = parts._policy(str(tmp_path), "cpu")
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([parts.PROMPT])).logits[0].float()
    likeliest = (logits / SamplingConfig().temperature).softmax(-1).sort(-1, descending=True)
    nucleus = (likeliest.values.cumsum(-1) < SamplingConfig().top_p).sum(-1).float()
    assert nucleus.median() < sampling.FIRST_CANDIDATES


def test_no_prompt_of_a_model_of_random_weights_holds_its_padding(tmp_path):
    parts = importlib.import_module("benchmarks.perf.gpu_parts")
    parts.random_model(tmp_path, parts.TINY)
    tokenizer = parts._policy(str(tmp_path), "cpu").tokenizer
    chat = tokenizer.apply_chat_template([{"role": "user", "content": "x"}], return_dict=True)
    assert tokenizer.pad_token_id not in chat["input_ids"]


@pytest.fixture
def bare_machine(monkeypatch):
    """A machine without `datasets` and `wandb`."""

    class Missing:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name in ("datasets", "wandb"):
                raise ModuleNotFoundError(name)

    for name in ("datasets", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)  # to be put back as it was
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Missing, *sys.meta_path])


@pytest.mark.usefixtures("bare_machine")
def test_a_stand_in_is_found_by_libraries_that_ask_what_is_installed():
    stand_in()
    for name in ("datasets", "wandb"):
        assert importlib.util.find_spec(name) is not None
    assert importlib.import_module("datasets").Dataset.from_list([{"a": 1}]) == [{"a": 1}]


def test_graphs_are_set_beside_the_own_forward_pass_of_the_model(tmp_path, monkeypatch):
    parts = importlib.import_module("benchmarks.perf.gpu_parts")
    parts.random_model(tmp_path, parts.TINY)
    policy = parts._policy(str(tmp_path), "cpu")
    seen = []

    class Stopwatch:
        usable = True

    def complete(prompts, batch, *_, **__):
        seen.append(policy.engine.recorder)
        return [[Completion("", (), (1,), (0.0,), "length")] * batch]

    monkeypatch.setattr(policy, "complete", complete)
    recorder = Stopwatch()
    policy.engine.override(reader="static", recorder=recorder)
    arguments = Namespace(device="cpu", max_new_tokens=1)
    rates = parts._rates(policy, 2, arguments)
    assert seen == [None, recorder, recorder, None, None, recorder]
    rows = parts._decoding_rows(rates, "tokens", 7.0)
    assert [row["what"] for row in rows] == ["tokens", "tokens, against the own forward pass"]
    assert rows[1]["peer_name"] == "the model's own forward pass"
    recorder.usable = False
    assert list(parts._rates(policy, 2, arguments)) == ["own"]


def test_rows_in_place_of_data_sets_are_a_list():
    rows = ListDataset.from_list([{"setup": "a"}])
    assert (len(rows), rows[0]) == (1, {"setup": "a"})
