import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.errors import ContractError
from mlrl_learners.errors import NumericsError, RunDirError
from mlrl_learners.loggers import JsonlFile, JsonlLogger, Logger, read_records


def test_records_come_back_in_order(tmp_path):
    file = JsonlFile(tmp_path / "deep" / "a.jsonl")
    for step in range(3):
        file.append({"step": step})
    assert list(JsonlFile(file.path).records()) == [{"step": 0}, {"step": 1}, {"step": 2}]


def test_a_reader_leaves_a_half_written_record_to_the_process_that_writes_it(tmp_path):
    file = JsonlFile(tmp_path / "a.jsonl")
    file.append({"step": 0})
    with file.path.open("ab") as writer:
        writer.write(b'{"step": ')
        writer.flush()
        assert list(read_records(file.path)) == [{"step": 0}]
        writer.write(b"1}\n")
    assert list(read_records(file.path)) == [{"step": 0}, {"step": 1}]


def test_a_reader_creates_no_file(tmp_path):
    assert list(read_records(tmp_path / "none" / "a.jsonl")) == []
    assert list(tmp_path.iterdir()) == []


def test_records_written_together_are_the_bytes_of_records_written_one_by_one(tmp_path):
    together, one_by_one = JsonlFile(tmp_path / "a.jsonl"), JsonlFile(tmp_path / "b.jsonl")
    records = [{"step": step} for step in range(3)]
    together.extend([])
    together.extend(iter(records))
    for record in records:
        one_by_one.append(record)
    assert together.path.read_bytes() == one_by_one.path.read_bytes()


def test_records_written_together_are_synced_once(tmp_path, monkeypatch):
    file, synced = JsonlFile(tmp_path / "a.jsonl"), []
    monkeypatch.setattr(os, "fsync", synced.append)
    file.extend({"step": step} for step in range(100))
    assert len(synced) == 1


def test_none_of_the_records_written_together_is_kept_if_one_is_not_finite(tmp_path):
    file = JsonlFile(tmp_path / "a.jsonl")
    with pytest.raises(NumericsError, match="x"):
        file.extend([{"x": 0.0}, {"x": float("inf")}])
    assert list(file.records()) == []


@given(text=st.text(st.characters(codec=None), max_size=30))
def test_any_text_survives_lone_surrogates_included(text, tmp_path_factory):
    file = JsonlFile(tmp_path_factory.mktemp("text") / "a.jsonl")
    file.append({"text": text})
    assert next(iter(file.records()))["text"] == text
    assert file.path.read_bytes().count(b"\n") == 1


@pytest.mark.parametrize("torn", ['{"step": 1', '{"step": 1, "x": "' + "y" * 200_000, "\0\0\0"])
def test_a_torn_last_line_is_trimmed_when_opening(tmp_path, torn):
    path = tmp_path / "a.jsonl"
    path.write_text('{"step": 0}\n' + torn)
    file = JsonlFile(path)
    file.append({"step": 2})
    assert list(file.records()) == [{"step": 0}, {"step": 2}]


def test_a_finished_record_without_its_newline_is_kept(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"step": 0}\n{"step": 1}')
    assert list(JsonlFile(path).records()) == [{"step": 0}, {"step": 1}]
    assert path.read_text().endswith("\n")


def test_a_file_of_one_torn_line_becomes_empty(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"step"')
    assert list(JsonlFile(tmp_path / "a.jsonl").records()) == []


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"step": 0}\nnonsense\n{"step": 1}\n')
    with pytest.raises(RunDirError, match=r"a\.jsonl:2"):
        list(JsonlFile(path).records())


def test_a_value_that_is_not_finite_is_refused_by_name_and_nothing_is_written(tmp_path):
    file = JsonlFile(tmp_path / "a.jsonl")
    with pytest.raises(NumericsError, match=r"agents\.main\[1\]"):
        file.append({"agents": {"main": [0.0, float("nan")]}})
    assert file.path.read_bytes() == b""


def test_numbers_of_numpy_are_written_as_numbers(tmp_path):
    file = JsonlFile(tmp_path / "a.jsonl")
    file.append({"one": np.float32(0.5), "many": {"of": np.arange(3), "is": np.bool_(True)}})
    assert list(file.records()) == [{"one": 0.5, "many": {"of": [0, 1, 2], "is": True}}]


def test_a_number_of_numpy_that_is_not_finite_is_refused_by_name(tmp_path):
    with pytest.raises(NumericsError, match=r"not finite: info\[1\]"):
        JsonlFile(tmp_path / "a.jsonl").append({"info": np.array([0.0, np.nan])})


@pytest.mark.parametrize("value", [object(), {1, 2}, {(0, 1): "a"}])
def test_a_value_that_json_does_not_know_is_refused_and_nothing_is_written(tmp_path, value):
    file = JsonlFile(tmp_path / "a.jsonl")
    with pytest.raises(ContractError, match=r"a.jsonl: .*must be"):
        file.append({"info": value})
    assert list(file.records()) == []


def test_a_full_disk_leaves_whole_lines_and_names_the_file(tmp_path):
    path = tmp_path / "a.jsonl"
    script = f"""
        import resource
        from mlrl_learners.errors import RunDirError
        from mlrl_learners.loggers import JsonlFile
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        file = JsonlFile({str(path)!r})
        file.append({{"step": 0}})
        try:
            file.append({{"text": "x" * 500}})
        except RunDirError as error:
            print(error)
        file.append({{"step": 1}})
    """
    # A limit on file size stops a write half-way, as a full disk does.
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert str(path) in result.stdout
    assert len(result.stdout.strip().splitlines()) == 1
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"step": 0},
        {"step": 1},
    ]


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirError, match="file"):
        JsonlFile(tmp_path / "file" / "a.jsonl")


def test_keep_moves_superseded_records_aside_and_loses_none(tmp_path):
    file = JsonlFile(tmp_path / "metrics.jsonl")
    for step in range(4):
        file.append({"step": step})
    assert file.keep(lambda record: record["step"] < 3) == 1
    assert file.keep(lambda record: record["step"] < 2) == 1
    assert [r["step"] for r in file.records()] == [0, 1]
    aside = JsonlFile(tmp_path / "metrics.abandoned.jsonl")
    assert [r["step"] for r in aside.records()] == [3, 2]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "metrics.abandoned.jsonl",
        "metrics.jsonl",
    ]


def test_keep_of_everything_touches_nothing(tmp_path):
    file = JsonlFile(tmp_path / "metrics.jsonl")
    file.append({"step": 0})
    assert file.keep(lambda _: True) == 0
    assert [p.name for p in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_the_jsonl_logger_writes_the_step_beside_the_metrics(tmp_path):
    logger = JsonlLogger(tmp_path / "metrics.jsonl")
    assert isinstance(logger, Logger)
    logger.log({"loss": 0.5}, step=3)
    logger.close()
    assert list(JsonlFile(tmp_path / "metrics.jsonl").records()) == [{"step": 3, "loss": 0.5}]
