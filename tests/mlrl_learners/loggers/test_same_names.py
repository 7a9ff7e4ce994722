"""Every logger shows the same names and values of one run."""

import json
import struct
import time
from collections import defaultdict

import pytest

import mlrl_learners
from mlrl_learners.cli.train import train_config
from mlrl_learners.config.run import from_mapping

ITERATIONS = 3
COORDINATES = {"iteration", "seconds"}  # what a line of the run directory has beside metrics
CONFIG = {
    "learner": {"name": "student"},
    "train": {"iterations": ITERATIONS, "eval_every": 1, "eval_tasks": 2, "seed": 1},
    "logging": {"wandb": "offline", "tensorboard": True},
}


def from_jsonl(run_dir):
    points = defaultdict(dict)
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        for line in (run_dir / name).read_text().splitlines():
            record = json.loads(line)
            for metric, value in record.items():
                if name == "metrics.jsonl" or metric.startswith("eval/"):
                    points[metric][record["iteration"]] = value
    return {name: steps for name, steps in points.items() if name not in COORDINATES}


def from_tensorboard(run_dir):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(run_dir / "tensorboard")).Reload()
    return {
        name: {point.step: point.value for point in events.Scalars(name)}
        for name in events.Tags()["scalars"]
    }


def from_wandb(run_dir):
    from wandb.proto import wandb_internal_pb2

    points = defaultdict(dict)
    for path in (run_dir / "wandb").glob("offline-run-*/*.wandb"):
        for payload in offline_records(path.read_bytes()):
            record = wandb_internal_pb2.Record.FromString(payload)
            row = {
                item.key or "/".join(item.nested_key): json.loads(item.value_json)
                for item in record.history.item
            }
            for name, value in row.items():
                if not name.startswith("_"):
                    points[name][row["_step"]] = value
    return dict(points)


def offline_records(data, block=32768):
    """Yield the records of an offline file: LevelDB's log format behind seven bytes of header.

    https://github.com/google/leveldb/blob/main/doc/log_format.md
    """
    at, record = 7, b""
    while at + 7 <= len(data):
        if block - at % block < 7:  # too little is left of the block for a header
            at += block - at % block
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or its last part
            yield record
            record = b""


def eventually(read, expected, seconds=30.0):
    """Read until that gives what is expected: the service behind wandb writes a little later."""
    deadline = time.monotonic() + seconds
    while (found := read()) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def test_all_loggers_show_the_same_names_and_values(tmp_path, addition_env, student):
    pytest.importorskip("wandb")
    pytest.importorskip("tensorboard")
    assert student in mlrl_learners.registry
    config = from_mapping({"env": {"id": addition_env}, **CONFIG})
    train_config(config, tmp_path / "run", progress=False)
    expected = from_jsonl(tmp_path / "run")
    assert {"train/return", "eval/return", "student/lessons"} <= expected.keys()
    assert set(expected["train/return"]) == set(range(1, ITERATIONS + 1))
    assert set(expected["eval/return"]) == set(range(ITERATIONS + 1))
    assert eventually(lambda: from_wandb(tmp_path / "run"), expected) == expected
    shown = from_tensorboard(tmp_path / "run")
    assert shown.keys() == expected.keys()
    for name, steps in shown.items():  # float32 there
        assert steps == pytest.approx(expected[name], rel=1e-6)
