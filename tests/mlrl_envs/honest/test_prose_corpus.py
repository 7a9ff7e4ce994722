import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest

import mlrl_envs

FOLDER = Path(__file__).parent
FILES = [FOLDER / f"{name}.jsonl" for name in ("arxiv", "debate", "story", "tldr")]
LONG_SENTENCE = 12
DATA = Path(os.environ.get("MLRL_DATA_DIR", ""))
DATASETS = {"mlrl/tldr-v1": "tldr.jsonl", "mlrl/arxiv-v1": "arxiv_abstract.jsonl"}


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def texts(entry):
    return [text for turn in entry["turns"] for text in turn.values()]


def long_sentences(text):
    for sentence in re.split(r"[.!?]+[\"')]*\s+|\n+", text):
        words = re.findall(r"[\w']+", sentence.lower())
        if len(words) > LONG_SENTENCE:
            yield " ".join(words)


def ships(entry):
    return entry["env_id"] not in DATASETS or entry["split"] == "sample"


def check_tasks_and_agents(entries):
    for env_id, split in sorted({(entry["env_id"], entry["split"]) for entry in entries}):
        env = mlrl_envs.make(env_id, split=split)
        for entry in entries:
            if (entry["env_id"], entry["split"]) == (env_id, split):
                _, infos = env.reset(options={"task_id": entry["task_id"]})
                assert {info["task_id"] for info in infos.values()} == {entry["task_id"]}
                assert all(list(turn) == list(env.possible_agents) for turn in entry["turns"])
        env.close()


def test_there_is_a_file_for_every_environment_of_prose():
    assert all(path.is_file() for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_lines_have_the_documented_fields(path):
    for entry in read(path):
        assert list(entry) == ["env_id", "split", "task_id", "style", "turns"]
        assert entry["env_id"] == f"mlrl/{path.stem}-v1"
        assert entry["turns"]
        assert all(text == text.strip() and text for text in texts(entry))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_large_and_varied(path):
    entries = read(path)
    assert len(entries) >= 40
    assert len({entry["task_id"] for entry in entries}) >= 15
    assert len({entry["style"] for entry in entries}) >= 12


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_shipped_tasks_exist_and_agents_match(path):
    check_tasks_and_agents([entry for entry in read(path) if ships(entry)])


@pytest.mark.parametrize("env_id", sorted(DATASETS))
def test_tasks_of_the_data_sets_exist_and_agents_match(env_id):
    if not (DATA / DATASETS[env_id]).is_file():
        pytest.skip(f"needs MLRL_DATA_DIR/{DATASETS[env_id]}")
    entries = read(FOLDER / f"{env_id.removeprefix('mlrl/').removesuffix('-v1')}.jsonl")
    check_tasks_and_agents([entry for entry in entries if not ships(entry)])


def test_about_a_third_of_the_debates_have_more_than_one_turn():
    turns = [len(entry["turns"]) for entry in read(FOLDER / "debate.jsonl")]
    assert 1 / 4 <= sum(count > 1 for count in turns) / len(turns) <= 1 / 2


def test_no_two_texts_share_a_long_sentence():
    found = Counter()
    for path in FILES:
        for entry in read(path):
            for text in texts(entry):
                found.update(set(long_sentences(text)))
    assert [sentence for sentence, count in found.items() if count > 1] == []
