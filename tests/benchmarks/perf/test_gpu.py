"""Figures of a GPU: both sides are measured alike, and a figure says what it measured."""

import importlib
import json
import os
import subprocess
from argparse import Namespace
from pathlib import Path

import pytest
import torch

gpu = importlib.import_module("benchmarks.perf.gpu")
parts = importlib.import_module("benchmarks.perf.gpu_parts")
machine = importlib.import_module("benchmarks.perf.gpu_machine")

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "benchmarks" / "perf" / "gpu.sh"
ARGUMENTS = Namespace(
    device="cpu", tasks=1, max_new_tokens=4, micro_batch_tokens=64, rounds=3, warmup=2
)


def test_both_sides_of_the_step_have_the_same_rounds_and_warm_up(monkeypatch):
    seeds = {"ours": [], "comlrl": []}

    def build(side):
        def step(seed):
            seeds[side].append(seed)
            return {"seconds": 100.0 if seed < ARGUMENTS.warmup else float(seed)}

        return step

    monkeypatch.setattr("benchmarks.perf.step_ours.build", lambda _: (None, build("ours")))
    monkeypatch.setattr("benchmarks.perf.magrpo_comlrl.build", lambda _: "comlrl")
    monkeypatch.setattr(
        "benchmarks.perf.comlrl_side.measured_training", lambda trainer, _: build(trainer)
    )
    (ours,), (peer,) = parts.our_step("", ARGUMENTS), parts.peer_step("", ARGUMENTS)
    assert seeds["ours"] == seeds["comlrl"] == [0, 1, 2, 3, 4]
    assert ours["ours"] == peer["ours"] == {"n": 3, "median": 3.0, "min": 2.0, "max": 4.0}


def test_the_ratio_to_the_bandwidth_is_that_of_the_median_that_is_shown():
    (row,) = parts._decoding_rows({"own": [10.0, 20.0, 90.0]}, "tokens", 100.0)
    assert row["ratio"] == row["ours"]["median"] / row["peer"] == 0.2


def test_the_ratio_to_a_product_is_that_of_the_median_that_is_shown(tmp_path, monkeypatch):
    parts.random_model(tmp_path, parts.TINY)
    monkeypatch.setattr(parts, "timed", lambda *_, **__: [(0, 1e-6), (0, 2e-6), (0, 9e-6)])
    (row,) = parts.update(str(tmp_path), ARGUMENTS)
    assert row["ratio"] == pytest.approx(row["ours"]["median"] / row["peer"], rel=0.05)


@pytest.mark.parametrize(
    ("words", "shown", "hidden"),
    [
        (["--smoke", "--device", "cpu"], ["CPU", "tiny"], ["GPU", "0.5B"]),
        (["--device", "cpu"], ["CPU", "0.5B"], ["GPU", "tiny"]),
        ([], ["GPU", "0.5B"], ["CPU", "tiny"]),
    ],
)
def test_the_title_names_the_device_and_the_models(words, shown, hidden, capsys, monkeypatch):
    monkeypatch.setattr(parts, "random_model", lambda *_: None)
    monkeypatch.setattr(gpu, "hardware", lambda _: {})
    gpu.main([*words, "--seconds", "0"])
    figure = json.loads(capsys.readouterr().out)
    assert all(text in figure["title"] for text in shown)
    assert not any(text in figure["title"] for text in hidden)
    assert figure["work"]["smoke"] is ("--smoke" in words)


def test_the_bandwidth_counts_bytes_read_and_bytes_written(monkeypatch):
    monkeypatch.setattr(machine, "timed", lambda *_, **__: [(0, 0.5), (0, 0.25)])
    moved = 2 * (1 << 22) * torch.empty(0).element_size()
    assert machine.bandwidth("cpu") == moved / 0.25
    assert "half" not in machine.bandwidth.__doc__


@pytest.mark.parametrize("carry", ["{root}/build/carry", "build/carry"])
def test_the_carried_packages_are_found_by_an_absolute_or_relative_path(carry, tmp_path):
    python = tmp_path / "python"
    python.write_text('#!/bin/bash\necho "$PYTHONPATH"\n')
    python.chmod(0o755)
    variables = {"PYTHON": str(python), "CARRY": carry.format(root=ROOT), "PYTHONPATH": ""}
    shown = subprocess.check_output([str(SCRIPT)], env={**os.environ, **variables}, text=True)
    assert shown.strip().split(":")[0] == f"{ROOT}/build/carry"
