"""Comparisons of whole steps: sides in memory at a time, rows of the table, and stored results."""

import json

import pytest

from benchmarks.perf import versus
from benchmarks.perf.__main__ import RESULTS
from benchmarks.perf.versus import Side, check_lengths, rows
from benchmarks.perf.work import Work

# Name of the result, name of the side of the peer, and name of the peer in the table.
STORED = [
    ("grpo_8x96", "trl, {}", "trl 1.16.0"),
    ("ippo_8x96", "comlrl", "comlrl 1.4.3 IAC"),
    *(
        (f"magrpo_{size}", "comlrl", "comlrl 1.4.3, float32")
        for size in ("1x96", "1x256", "8x96", "8x256", "8x96_2_turns")
    ),
]


@pytest.fixture
def diary(monkeypatch):
    """Workers that note when they start, work and stop."""
    notes = []

    class Diarist:
        def __init__(self, python, module, setup):
            self.module = module.rpartition(".")[2]
            self.about = {"name": self.module}

        def __enter__(self):
            notes.append(f"{self.module} starts")
            return self

        def __exit__(self, *_):
            notes.append(f"{self.module} stops")

        def round(self, seed, **how):
            notes.append(" ".join([self.module, *how.values()]))
            return {"seconds": 1.0}

    monkeypatch.setattr(versus, "Worker", Diarist)
    return notes


SIDES = [
    Side("python", "ours", {}, {"ours, a": {"way": "a"}, "ours, b": {"way": "b"}}),
    Side("python", "peer", {}, {"peer": {}}),
]


def measure(rounds, warmup):
    return versus._measure(Work("model", [{"a": "x"}]), SIDES, rounds=rounds, warmup=warmup)


def test_sides_of_one_turn_hold_memory_one_after_the_other(diary):
    measured, about = measure(rounds=1, warmup=0)
    stop = diary.index("ours stops")
    assert sorted(diary[:stop]) == ["ours a", "ours b", "ours starts"]
    assert diary[stop + 1 :] == ["peer starts", "peer", "peer stops"]
    assert {way: len(turns) for way, turns in measured.items()} == dict.fromkeys(measured, 1)
    assert list(measured) == ["ours, a", "ours, b", "peer"]
    assert [facts["name"] for facts in about] == ["ours", "peer"]


@pytest.mark.parametrize(("rounds", "warmup"), [(2, 0), (1, 1)])
def test_sides_of_more_turns_take_them_in_turns(diary, rounds, warmup):
    measured, _ = measure(rounds, warmup)
    turns = [note for note in diary if "st" not in note]
    assert sorted(turns[:3]) == sorted(turns[3:]) == ["ours a", "ours b", "peer"]
    assert diary[:2] == ["ours starts", "peer starts"]
    assert all(len(taken) == rounds for taken in measured.values())


PAIRS = [("ours, float32", "peer, float32"), ("ours, bf16", "peer, bf16")]


def turn(seconds, **more):
    return {"seconds": seconds, "tokens": 10.0, "cpu_seconds": seconds, **more}


MEASURED = {
    "ours, float32": [turn(2.0, peak_rss_mib=40.0), turn(2.0, peak_rss_mib=50.0)],
    "ours, bf16": [turn(1.0, peak_rss_mib=50.0)],
    "peer, float32": [turn(6.0, peak_rss_mib=100.0)],
    "peer, bf16": [turn(5.0, peak_rss_mib=90.0)],
}


def test_a_side_whose_answers_ended_early_is_refused():
    whole = {"seconds": 1.0, "samples": 8.0, "tokens": 768.0}
    check_lengths({"ours": [whole], "peer": [whole]}, 96)
    with pytest.raises(RuntimeError, match="ours sampled 683 tokens in 8 answers"):
        check_lengths({"peer": [whole], "ours": [whole, {**whole, "tokens": 683.0}]}, 96)


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.json")), ids=lambda file: file.stem)
def test_sides_of_stored_steps_sampled_equally_many_tokens(file):
    for name, figure in json.loads(file.read_text()).items():
        if name == "decoding" or name.startswith(("magrpo_", "grpo_", "ippo_")):
            rounds = [one for each in figure["measured"].values() for one in each]
            assert len({one["tokens"] for one in rounds}) == 1, name


def test_precisions_that_share_a_process_have_one_row_of_memory():
    *speeds, memory = rows(MEASURED, PAIRS, "them")
    assert memory["what"] == "peak resident memory, of both precisions"
    assert (memory["ours"], memory["peer"], memory["ratio"]) == (50.0, 100.0, 2.0)
    assert not any("memory" in row["what"] for row in speeds)


def test_the_memory_of_one_precision_bears_its_name():
    assert rows(MEASURED, PAIRS[:1], "them")[-1]["what"] == "peak resident memory, float32"


def test_sides_without_a_measured_memory_have_no_row_of_it():
    bare = {side: [turn(1.0)] for side in MEASURED}
    assert not any("memory" in row["what"] for row in rows(bare, PAIRS, "them"))


@pytest.mark.parametrize(("name", "peer", "peer_name"), STORED)
def test_stored_rows_of_whole_steps_follow_from_their_measurements(name, peer, peer_name):
    figure = json.loads((RESULTS / "amd-epyc-2-cores.json").read_text())[name]
    ours = sorted((side for side in figure["measured"] if side[:4] == "ours"), reverse=True)
    pairs = [(side, peer.format(side.removeprefix("ours, "))) for side in ours]
    assert figure["rows"] == rows(figure["measured"], pairs, peer_name)
