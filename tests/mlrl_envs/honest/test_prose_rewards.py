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
from mlrl_envs.rewards.prose.assignment import assignment_score
from mlrl_envs.rewards.prose.facts import facts_score
from mlrl_envs.rewards.writing.arxiv import RULES as ARXIV
from mlrl_envs.rewards.writing.tldr import RULES as TLDR

FOLDER = Path(__file__).parent
NAMES = ("story", "tldr", "arxiv", "debate")
HAS_DATA = {
    name: (Path(os.environ.get("MLRL_DATA_DIR", "")) / f"{file}.jsonl").is_file()
    for name, file in (("tldr", "tldr"), ("arxiv", "arxiv_abstract"))
}
# The posts of the sample split are too few for a mean of honest answers.
WITH_POSTS = pytest.mark.skipif(not HAS_DATA["tldr"], reason="needs MLRL_DATA_DIR with tldr.jsonl")


def held_out(entry):
    return int(hashlib.sha256(json.dumps(entry).encode()).hexdigest(), 16) % 2 == 1


def entries(name):
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [e for e in found if e["split"] == "sample" or HAS_DATA.get(name, True)]


def rewards(name, chosen, **options):
    earned = []
    for split in sorted({entry["split"] for entry in chosen}):
        env = mlrl_envs.make(f"mlrl/{name}-v1", split=split, max_turns=4, **options)
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


@pytest.mark.parametrize("is_held_out", [False, True])
def test_honest_arguments_keep_most_of_their_reward_with_the_vocabulary(is_held_out):
    chosen = [entry for entry in entries("debate") if held_out(entry) == is_held_out]
    plain, wide = rewards("debate", chosen), rewards("debate", chosen, vocabulary="topic")
    assert fmean(wide) >= 0.92 * fmean(plain)
    assert sum(value >= 0.6 for value in wide) >= 0.8 * len(wide)


@pytest.mark.parametrize("name", [pytest.param("tldr", marks=WITH_POSTS), "arxiv"])
def test_honest_answers_of_the_held_out_half_are_paid_where_facts_are_read(name):
    chosen = [entry for entry in entries(name) if held_out(entry)]
    plain, read = rewards(name, chosen), rewards(name, chosen, facts=True)
    assert all(with_facts <= without for with_facts, without in zip(read, plain, strict=True))
    assert fmean(read) >= 0.9 * fmean(plain)  # a factor lowers what is paid for the other text, too


@pytest.mark.parametrize(
    ("name", "rules"), [pytest.param("tldr", TLDR, marks=WITH_POSTS), ("arxiv", ARXIV)]
)
@pytest.mark.parametrize("is_held_out", [False, True])
def test_honest_texts_lose_little_for_facts(name, rules, is_held_out):
    sources = {
        task.task_id: task.source
        for split in {entry["split"] for entry in entries(name)}
        for task in mlrl_envs.make(f"mlrl/{name}-v1", split=split).family.tasks
    }
    factors = [
        facts_score(text, sources[entry["task_id"]], forgiven=part.outside)
        for entry in entries(name)
        if held_out(entry) == is_held_out
        for turn in entry["turns"]
        for text, part in zip(turn.values(), rules.parts, strict=True)
    ]
    assert fmean(factors) >= 0.95


@WITH_POSTS
@pytest.mark.parametrize("is_held_out", [False, True])
def test_summaries_of_people_lose_little_for_facts(is_held_out):
    file = Path(os.environ["MLRL_DATA_DIR"]) / "tldr.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    forgiven = TLDR.parts[0].outside
    factors = [
        facts_score(row["completion"], row["prompt"], forgiven=forgiven)
        for row in rows
        if held_out(row["prompt"]) == is_held_out
    ]
    assert fmean(factors) >= 0.95


@pytest.mark.parametrize("name", ["tldr", "arxiv"])
@pytest.mark.parametrize("is_held_out", [False, True])
def test_honest_texts_are_not_about_the_assignment(name, is_held_out):
    families = [
        mlrl_envs.make(f"mlrl/{name}-v1", split=split).family
        for split in sorted({entry["split"] for entry in entries(name)})
    ]
    tasks = {task.task_id: (task, family) for family in families for task in family.tasks}
    factors = []
    for entry in entries(name):
        task, family = tasks[entry["task_id"]]
        told = family.instructions(task)
        factors += [
            assignment_score(text, told[agent], task.source)
            for turn in entry["turns"]
            for agent, text in turn.items()
            if held_out(entry) == is_held_out
        ]
    assert_nearly_all_free(factors)


@WITH_POSTS
@pytest.mark.parametrize("is_held_out", [False, True])
def test_summaries_of_people_are_not_about_the_assignment(is_held_out):
    file = Path(os.environ["MLRL_DATA_DIR"]) / "tldr.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    family = mlrl_envs.make("mlrl/tldr-v1", split="sample").family
    told = family.instructions(family.tasks[0])["summary"]
    factors = [
        assignment_score(row["completion"], told, row["prompt"])
        for row in rows
        if held_out(row["prompt"]) == is_held_out
    ]
    assert_nearly_all_free(factors)


@pytest.mark.skipif(not HAS_DATA["arxiv"], reason="needs MLRL_DATA_DIR with arxiv_abstract.jsonl")
def test_abstracts_are_not_about_the_assignment_of_others():
    family = mlrl_envs.make("mlrl/arxiv-v1", split="all").family
    factors = [
        assignment_score(text.source, told, other.source)
        for text, other in zip(family.tasks, family.tasks[1:], strict=False)
        for told in family.instructions(other).values()
    ]
    assert_nearly_all_free(factors)


def assert_nearly_all_free(factors):
    assert fmean(factors) >= 0.97
    assert sum(factor == 1.0 for factor in factors) >= 0.95 * len(factors)
