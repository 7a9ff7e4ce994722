"""Games in which agents are not paid alike: each learns which of its own answers paid itself."""

import json

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.engine import TokenRow
from mlrl_learners.types import Completion, JointStep, Node, Rollout

AGENTS = ("left", "right")
PROMPT = "heads or tails"
PENNIES = {("h", "h"): 1.0, ("t", "t"): 1.0, ("h", "t"): -1.0, ("t", "h"): -1.0}


def make(name="madpo", seed=0, agents=AGENTS, **options):
    small = {
        "model": "tiny-random",
        "sampling": {"max_new_tokens": 8},
        "compute": {"device": "cpu"},
    }
    return mlrl_learners.make(name, agents=agents, seed=seed, **merge_options(small, options))


def completion(learner, agent, text):
    tokenizer = learner.policies[agent].tokenizer
    ids = tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
    prompt = tuple(tokenizer(PROMPT, add_special_tokens=False)["input_ids"])
    return Completion(text, prompt_ids=prompt, token_ids=ids, logprobs=(-1.0,) * len(ids))


def rollout(learner, left, right, pay):
    """Every answer of one side beside every answer of the other, each side paid by `pay`."""
    completions = {
        "left": [completion(learner, "left", text) for text in left],
        "right": [completion(learner, "right", text) for text in right],
    }
    steps = tuple(
        JointStep(
            samples={"left": i, "right": j},
            rewards=dict(zip(AGENTS, pay(a, b), strict=True)),
            components={},
            infos={},
            terminated=True,
            truncated=False,
        )
        for i, a in enumerate(left)
        for j, b in enumerate(right)
    )
    observations = dict.fromkeys(AGENTS, PROMPT)
    return Rollout("pennies", "0", AGENTS, Node(0, observations, completions, steps))


def pennies(a, b):
    return PENNIES[a, b], -PENNIES[a, b]


def levels(a, b):
    """Zero-sum, and both sides have a better answer: "t"."""
    worth = float(a == "t") - float(b == "t")
    return worth, -worth


def weights(policy):
    return [parameter.detach().clone() for parameter in policy.model.parameters()]


def is_changed(policy, before):
    return any(not torch.equal(a, b) for a, b in zip(before, weights(policy), strict=True))


def preference(learner, agent, played, better, worse):
    """log pi(better) - log pi(worse) of an agent."""
    answers = {each.text: each for each in played.root.completions[agent]}
    rows = [TokenRow(answers[x].prompt_ids, answers[x].token_ids) for x in (better, worse)]
    with torch.no_grad():
        values, _ = learner.policies[agent].logprobs(rows, temperature=1.0)
    parts = values.split([len(row.token_ids) for row in rows])
    return float(parts[0].sum() - parts[1].sum())


def game(*turns):
    return {"return": 0.0, "turns": list(turns)}


def a_turn(left, right, pay=pennies, prompt=PROMPT):
    return {
        "observations": dict.fromkeys(AGENTS, prompt),
        "actions": {"left": left, "right": right},
        "rewards": dict(zip(AGENTS, pay(left, right), strict=True)),
    }


def acted(learner, turn, agent, paid, child=None):
    """A node at which one agent acts: answers that pay both, the first of which goes on."""
    steps = tuple(
        JointStep(
            samples={agent: number},
            rewards=dict.fromkeys(AGENTS, reward),
            components={},
            infos={},
            terminated=number > 0 or child is None,
            truncated=False,
            child=None if number else child,
        )
        for number, reward in enumerate(paid.values())
    )
    answers = {agent: [completion(learner, agent, text) for text in paid]}
    (waiting,) = set(AGENTS) - {agent}
    return Node(turn, {agent: PROMPT}, answers, steps, {waiting: PROMPT})


def shared_turn(agent, text, pay):
    return {
        "observations": {agent: f"{PROMPT} of {agent}"},
        "actions": {agent: text},
        "rewards": dict.fromkeys(AGENTS, pay),
    }


def write(path, *episodes):
    path.write_text("".join(json.dumps(each) + "\n" for each in episodes))
    return str(path)


def test_in_a_zero_sum_game_each_side_moves_towards_its_own_better_answer():
    learner = make(optimizer={"lr": 1e-3})
    played = rollout(learner, ("h", "t"), ("h", "t"), levels)
    before = {agent: preference(learner, agent, played, "t", "h") for agent in AGENTS}
    metrics = learner.update([played])
    assert metrics["preferences/pairs"] == 2.0
    for agent in AGENTS:
        assert preference(learner, agent, played, "t", "h") > before[agent] + 1e-3


def test_who_has_no_better_answer_of_its_own_stays_as_it_is():
    learner = make(optimizer={"lr": 1e-3})
    played = rollout(learner, ("h", "t"), ("h", "h"), pennies)
    before = {agent: weights(learner.policies[agent]) for agent in AGENTS}
    metrics = learner.update([played])
    assert metrics["preferences/pairs"] == 1.0
    assert metrics["preferences/gap"] == pytest.approx(2.0)
    assert is_changed(learner.policies["left"], before["left"])
    assert not is_changed(learner.policies["right"], before["right"])


def test_a_pair_of_own_answers_holds_one_agent_and_a_pair_of_shared_pay_all():
    learner = make()
    own = rollout(learner, ("h", "t"), ("h", "t"), levels)
    shared = rollout(learner, ("h", "t"), ("h", "t"), lambda a, b: 2 * (float(a == b),))
    assert [set(pair.better) for pair in learner._played([own])] == [{"left"}, {"right"}]
    assert {frozenset(pair.better) for pair in learner._played([shared])} == {frozenset(AGENTS)}


def test_own_answers_of_a_frozen_agent_make_no_pairs():
    learner = make(team={"frozen": ["right"]})
    own = rollout(learner, ("h", "t"), ("h", "t"), levels)
    assert [set(pair.better) for pair in learner._played([own])] == [{"left"}]


def test_where_only_a_frozen_agent_acts_shared_pay_makes_no_pairs(tmp_path):
    """`left` acts in turn 0, `right` in turn 1, and both are paid for the last answer."""
    learner = make(team={"frozen": ["right"]})
    last = acted(learner, 1, "right", {"h": 1.0, "t": 0.0})
    first = acted(learner, 0, "left", {"h": 1.0, "t": 0.0}, child=last)
    played = Rollout("pennies", "0", AGENTS, first)
    assert [set(pair.better) for pair in learner._played([played])] == [{"left"}]
    shown = [
        game(shared_turn("left", one, 0.0), shared_turn("right", two, pay))
        for one, two, pay in (("h", "h", 1.0), ("t", "h", 0.5), ("t", "t", 0.0))
    ]
    file = write(tmp_path / "e", *shown)
    learner = make(team={"frozen": ["right"]}, preferences={"episodes": file})
    assert [set(pair.better) for pair in learner.examples] == [{"left"}]
    assert learner.update([])["preferences/pairs"] == 1.0


def test_a_file_of_a_zero_sum_game_ranks_the_mean_pay_of_each_own_answer(tmp_path):
    shown = [game(a_turn(a, b)) for a, b in ("hh", "hh", "ht", "th")]
    learner = make(preferences={"episodes": write(tmp_path / "e", *shown)}, optimizer={"lr": 1e-3})
    gaps = {}
    for pair in learner.examples:
        (agent,) = pair.better
        gaps[agent] = pair.gap
    # left: h earned 1, 1, -1 and t -1; right: h earned -1, -1, 1 and t 1
    assert gaps == {"left": pytest.approx(4 / 3), "right": pytest.approx(4 / 3)}
    assert learner.update([])["preferences/pairs"] == 2.0


@pytest.mark.parametrize("source", ["played", "file"])
def test_a_reward_model_judges_each_agents_own_pay(source, tmp_path):
    options = {
        "preferences": {"num_pairs": 4, "held_out": 0.0},
        "reward_model": {"lr": 1e-2, "epochs": 20},
    }
    if source == "file":
        shown = [game(a_turn(a, b, pay=levels)) for a in "ht" for b in "ht"]
        options["preferences"]["episodes"] = write(tmp_path / "e", *shown)
    learner = make(
        "marlhf", **merge_options(options, {"group": {"joint_mode": "cross", "size": 2}})
    )
    played = rollout(learner, ("h", "t"), ("h", "t"), levels)
    assert learner.update([played])["reward_model/pairs"] > 0
    (paid,) = learner.rescored([played])
    by_answers = {
        tuple(paid.root.completions[a][step.samples[a]].text for a in AGENTS): step.rewards
        for step in paid.root.steps
    }
    assert by_answers["t", "h"]["left"] > by_answers["h", "t"]["left"]
    assert by_answers["h", "t"]["right"] > by_answers["t", "h"]["right"]


def test_shared_pay_keeps_one_score_for_all_and_the_text_of_before():
    learner = make("marlhf", group={"joint_mode": "cross", "size": 2})
    played = rollout(learner, ("h", "t"), ("h", "t"), lambda a, b: 2 * (float(a == b),))
    learner.update([played])
    (paid,) = learner.rescored([played])
    assert all(len(set(step.rewards.values())) == 1 for step in paid.root.steps)
    assert not any("pay of" in text for pair in learner._pairs([played]) for text in
                   (pair.better, pair.worse))  # fmt: skip


def test_once_pay_was_seen_to_differ_scores_stay_apart_also_after_a_resume(tmp_path):
    def update(learner, pay):
        learner.update([rollout(learner, ("h", "t"), ("h", "t"), pay)])

    learner, other = (
        make("marlhf", seed=s, group={"joint_mode": "cross", "size": 2}) for s in (0, 9)
    )
    update(learner, levels)
    learner.save(tmp_path)
    other.load(tmp_path)
    for each in (learner, other):
        update(each, lambda a, b: 2 * (float(a == b),))
        played = rollout(each, ("h", "t"), ("h", "t"), lambda a, b: 2 * (float(a == b),))
        assert any("pay of [left]" in pair.better for pair in each._pairs([played]))
    for agent in AGENTS:
        assert not is_changed(other.policies[agent], weights(learner.policies[agent]))
