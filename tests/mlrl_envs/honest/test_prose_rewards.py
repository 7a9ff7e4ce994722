"""Rewards of honest answers, in halves chosen by a hash; thresholds were chosen on the other half.

Figures of both halves were seen meanwhile, so this half is no blind test.
"""

import hashlib
import json
import os
from pathlib import Path
from statistics import fmean

import pytest

import mlrl_envs

FOLDER = Path(__file__).parent
NAMES = ("story", "tldr", "arxiv", "debate")
HAS_DATA = {
    name: (Path(os.environ.get("MLRL_DATA_DIR", "")) / f"{file}.jsonl").is_file()
    for name, file in (("tldr", "tldr"), ("arxiv", "arxiv_abstract"))
}


def held_out(entry):
    return int(hashlib.sha256(json.dumps(entry).encode()).hexdigest(), 16) % 2 == 1


def entries(name):
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [e for e in found if e["split"] == "sample" or HAS_DATA.get(name, True)]


def rewards(name, chosen):
    earned = []
    for split in sorted({entry["split"] for entry in chosen}):
        env = mlrl_envs.make(f"mlrl/{name}-v1", split=split, max_turns=4)
        for entry in chosen:
            if entry["split"] != split:
                continue
            env.reset(options={"task_id": entry["task_id"]})
            for turn in entry["turns"]:
                values = env.step(turn)[1]
                earned += values.values() if name == "debate" else [next(iter(values.values()))]
    return earned


@pytest.mark.parametrize("name", NAMES)
def test_honest_answers_of_the_held_out_half_are_paid(name):
    earned = rewards(name, [entry for entry in entries(name) if held_out(entry)])
    assert fmean(earned) >= 0.8
    assert sum(value >= 0.6 for value in earned) >= 0.85 * len(earned)


@pytest.mark.parametrize("name", NAMES)
def test_nine_of_ten_honest_answers_earn_three_fifths(name):
    earned = rewards(name, entries(name))
    assert fmean(earned) >= 0.8
    assert sum(value >= 0.6 for value in earned) >= 0.88 * len(earned)


@pytest.mark.parametrize("name", NAMES)
def test_answers_to_other_tasks_earn_little(name):
    chosen = entries(name)
    moved = [
        {**entry, "turns": other["turns"][:1]}
        for entry, other in zip(chosen, chosen[7:] + chosen[:7], strict=True)
        if entry["task_id"] != other["task_id"]
    ]
    assert fmean(rewards(name, moved)) < 0.2
