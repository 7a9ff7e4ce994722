"""Every family of attack makes texts, is pure, and applies where it should."""

import random
from dataclasses import replace

import pytest

import mlrl_envs
from mlrl_envs.auditing.families import FAMILIES, choose
from mlrl_envs.auditing.mutations import mutate
from mlrl_envs.auditing.playing import Place, play
from mlrl_envs.auditing.run import audit
from mlrl_envs.auditing.scene import KINDS, Scene, kind_of, task_text
from mlrl_envs.testing import JUNK_TEXTS

SOURCES = {
    "text": "My dog ate a shoe. I was at work for two hours. She is fine, but I am not.",
    "code": "Problem",
    "number": "A baker has 12 trays of 18 rolls and sells 149.",
    "calls": "Question: who cast the bell of the Bridge Tower in 1845?",
    "commands": "Write HI. The wall: x from 0 to 2, y from 0 to 1. Blocks: stone and glass.",
}
ANSWERS = {
    "text": ("The dog ate one shoe. The owner is upset.", "It happened at work. She is fine."),
    "code": (
        "```python\ndef aux(*args):\n    return list(args)\n```",
        "```python\ndef total(a, b):\n    return {'sum': a + b}['sum']\n```",
    ),
    "number": ("12 * 18 = 216\nAnswer: 67", "216 - 149 = 67\nAnswer: 67"),
    "calls": ("<tool_call>{}</tool_call>", "<answer>Jonas Berg</answer>"),
    "commands": ("/setblock 0 0 0 stone\n/setblock 2 0 0 stone", "/setblock 1 0 0 glass"),
}
CODE = "```python\ndef total(a, b):\n    ...\nassert total(1, 2) == 3\n```\n\nYour part: write {}."


def scene_of(kind):
    agents = ("aux", "main")
    observations = dict.fromkeys(agents, f"{SOURCES[kind]}\n\nAnswer it.")
    if kind == "code":
        parts = "a helper function named `aux`", "the function `total`. You may call `aux(...)`"
        texts = [CODE.format(part) for part in parts]
        observations = dict(zip(agents, texts, strict=True))
    answer = dict(zip(agents, ANSWERS[kind], strict=True))
    return Scene(
        agents=agents,
        observations=observations,
        sources=dict.fromkeys(agents, SOURCES[kind]),
        kind=kind,
        others=[answer, {agent: text[::-1] for agent, text in answer.items()}],
        answer=answer,
    )


CASES = [(family.name, kind) for family in FAMILIES.values() for kind in family.kinds]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_family_is_a_pure_function_of_scene_and_seed(name, kind):
    scene = scene_of(kind)
    for seed in range(5):
        first = FAMILIES[name].attack(scene, random.Random(seed))
        assert first == FAMILIES[name].attack(scene, random.Random(seed))
        assert set(first) == set(scene.agents)
        assert all(type(text) is str for text in first.values())


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_family_applies_to_any_text(name, kind):
    for text in (*JUNK_TEXTS, "10\u00b2 is \u00bd of \u0663", ". " * 50):
        scene = scene_of(kind)
        hostile = dict.fromkeys(scene.agents, text[:5000])
        scene = replace(scene, sources=hostile, observations=hostile, answer=hostile)
        action = FAMILIES[name].attack(replace(scene, others=[hostile] * 2), random.Random(0))
        assert action is None or set(action) == set(scene.agents)


@pytest.mark.parametrize("kind", KINDS)
def test_families_that_know_the_answer_need_one(kind):
    scene = scene_of(kind)
    without = Scene(**{**vars(scene), "answer": None})
    for family in choose(None, kind):
        action = family.attack(without, random.Random(0))
        assert (action is None) == family.knows_answer


@pytest.mark.parametrize("kind", KINDS)
def test_mutations_keep_agents_and_never_fail(kind):
    scene, rng = scene_of(kind), random.Random(0)
    action = dict.fromkeys(scene.agents, "")
    for _ in range(300):
        action = mutate(action, scene.others[0], scene, rng)
        action = {agent: text[:2000] for agent, text in action.items()}
        assert set(action) == set(scene.agents)


@pytest.mark.parametrize(
    ("env_id", "kind"),
    [
        ("mlrl/story-v1", "text"),
        ("mlrl/tldr-v1", "text"),
        ("mlrl/arxiv-v1", "text"),
        ("mlrl/debate-v1", "text"),
        ("mlrl/mbpp-v1", "code"),
        ("mlrl/classeval-v1", "code"),
        ("mlrl/math-v2", "number"),
        ("mlrl/tools-v1", "calls"),
        ("mlrl/strbuild-v0", "commands"),
        ("mlrl/housebuild-v0", "commands"),
    ],
)
def test_the_kind_of_every_environment_is_inferred(env_id, kind):
    env = mlrl_envs.make(env_id, split="sample")
    observations, _ = env.reset(seed=0)
    assert kind_of(observations, env.reference_actions()) == kind


def test_calls_are_attacked_if_a_chat_template_describes_them():
    env = mlrl_envs.make("mlrl/tools-v1", split="sample", tool_format="template")
    observations, _ = env.reset(seed=0)
    assert kind_of(observations, env.reference_actions()) == "calls"


def test_the_source_is_what_another_task_does_not_say():
    one, other = "Post:\n\nMy goat.\n\nWrite a summary.", "Post:\n\nMy cat.\n\nWrite a summary."
    assert task_text(one, other) == "My goat."
    assert task_text(one, one) == one


def test_shortcuts_in_code_pass_the_tests():
    env = mlrl_envs.make("mlrl/mbpp-v1", split="sample", max_turns=1, reward="attempts")
    names = ["trivial_helper", "listing_helper", "token_helper", "hidden_work", "example_table"]
    report = audit(env, attacks=names, tasks=1, budget=10)
    earned = {family.name: family.max for family in report.families}
    # 0.1 for the format and 0.3 for passed tests, without cooperation.
    assert all(earned[name] > 0.3 for name in names if name != "example_table")


def test_an_honest_answer_is_left_after_its_last_turn():
    env = mlrl_envs.make("mlrl/debate-v1", split="sample", max_turns=3)
    action = dict.fromkeys(env.possible_agents, "It is good, because it helps people.")
    place = Place(0, {"task_index": 0})
    kept, left = (play(env, place, [[action]], keep=keep)[0] for keep in (True, False))
    assert (len(kept), len(left)) == (3, 1)
    assert kept[0] == left[0]
