import sys

import pytest

from benchmarks.perf.common import (
    Worker,
    alternate,
    cpu_precisions,
    machine_name,
    spread,
    versions,
)

FAKE_SIDE = """
from benchmarks.perf.common import serve

def prepare(setup):
    print("a library that prints")
    return (lambda seed: {"seconds": setup["pace"] * seed}), {"name": setup["name"]}

serve(prepare)
"""


@pytest.fixture
def fake_module(tmp_path, monkeypatch):
    (tmp_path / "fake_side.py").write_text(FAKE_SIDE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "fake_side"


def test_a_worker_answers_every_round_whatever_its_libraries_print(fake_module):
    with Worker(sys.executable, fake_module, {"name": "fake", "pace": 0.5}) as worker:
        assert worker.about == {"name": "fake"}
        assert [worker.round(seed) for seed in (1, 2)] == [{"seconds": 0.5}, {"seconds": 1.0}]


def test_a_worker_that_dies_is_an_error(fake_module):
    with pytest.raises(RuntimeError, match="ended early"):
        Worker(sys.executable, fake_module, {"name": "fake"}).round("no number")


def test_sides_take_turns_and_warm_ups_do_not_count():
    calls = []

    def side(name):
        return lambda seed: calls.append(name) or {"seconds": float(seed)}

    measured = alternate({"a": side("a"), "b": side("b")}, rounds=2, warmup=1)
    assert calls == ["a", "b", "b", "a", "a", "b"]
    assert measured == {"a": [{"seconds": 1.0}, {"seconds": 2.0}]} | {"b": measured["a"]}


def test_both_sides_of_a_round_have_the_same_seed():
    seeds = {"a": [], "b": []}
    sides = {
        name: lambda seed, name=name: seeds[name].append(seed) or {"seconds": 1.0} for name in "ab"
    }
    alternate(sides, rounds=3, warmup=2)
    assert seeds["a"] == seeds["b"] == [0, 1, 2, 3, 4]


def test_every_side_starts_as_many_rounds_as_the_others():
    calls = []
    sides = {name: lambda seed, name=name: calls.append(name) or {"seconds": 1.0} for name in "abc"}
    alternate(sides, rounds=6, warmup=0)
    assert calls[::3] == ["a", "b", "c"] * 2


def test_spread_is_median_range_and_number_of_values():
    assert spread([3.0, 1.0, 2.0]) == {"n": 3, "median": 2.0, "min": 1.0, "max": 3.0}


def test_packages_that_are_not_installed_are_left_out():
    assert list(versions(["no-such-package-at-all"])) == ["python"]


@pytest.mark.parametrize(
    ("line", "precisions"),
    [
        ("flags\t\t: avx512f avx512_bf16 fma", ["float32", "bf16"]),
        ("flags\t\t: avx512f avx512_vnni fma", ["float32"]),
        ("Features\t: asimd bf16 i8mm", ["float32", "bf16"]),
        ("model name\t: a bf16 processor", ["float32"]),
    ],
)
def test_bfloat16_is_measured_only_where_the_processor_computes_it(tmp_path, line, precisions):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\n{line}\nbogomips\t: 2\n")
    assert cpu_precisions(cpuinfo) == precisions


def test_without_facts_about_the_processor_float32_is_measured(tmp_path):
    assert cpu_precisions(tmp_path / "missing") == ["float32"]


def test_the_name_of_a_machine_is_a_file_name():
    assert set(machine_name()) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
