"""Agents that take turns: every method learns from them, and who waits is asked nothing."""

import contextlib
import dataclasses
import math
import random

import pytest
import torch

import mlrl_envs
import mlrl_learners
from mlrl_envs.errors import InvalidArgumentError
from mlrl_learners.actors import ReferenceActor
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.evaluation.collect import collect
from mlrl_learners.play.rollout import collect_rollouts, play_episodes
from mlrl_learners.policies import Policy
from mlrl_learners.registry import BUILT_IN
from mlrl_learners.testing import ScriptedActor, ToyEnv
from mlrl_learners.testing.toy_model import toy_model
from mlrl_learners.testing.toy_training import mean_return
from mlrl_learners.testing.toys import TEXTS, TOYS

AGENTS = ("left", "right")
RELAY = TOYS["relay"]
METHODS = [spec.name for spec in BUILT_IN if spec.max_agents != 1]
ENV_ID, ALONE_ID = "test/relay-v0", "test/relay-alone-v0"


@pytest.fixture
def relay_ids():
    """Register the toy for two agents and for one."""
    for env_id, agents in ((ENV_ID, AGENTS), (ALONE_ID, AGENTS[:1])):
        with contextlib.suppress(InvalidArgumentError):
            mlrl_envs.register(env_id, lambda agents=agents: ToyEnv(RELAY, agents))
    return ENV_ID, ALONE_ID


def learner_of(name, agents=AGENTS, seed=0, **options):
    small = {
        "sampling": {"max_new_tokens": 1, "temperature": 1.0, "top_p": 1.0},
        "optimizer": {"lr": 1e-2},
        "compute": {"device": "cpu"},
    }
    return mlrl_learners.make(
        name, agents=agents, model=toy_model(seed), seed=seed, **merge_options(small, options)
    )


def play(learner, rollouts=4, seed=0):
    envs = [ToyEnv(RELAY, learner.agents) for _ in range(rollouts)]
    options = [{} for _ in envs]
    seeds = [seed * rollouts + number for number in range(rollouts)]
    return collect_rollouts(
        envs, learner, learner.rollout, task_options=options, seeds=seeds
    ).rollouts


@pytest.mark.parametrize("branching", ["tree", "chain"])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_from_those_who_act(name, branching):
    options = {} if name == "sft" else {"group": {"branching": branching}}
    learner = learner_of(name, **merge_options(options, {"group": {"size": 2}}))
    rollouts = play(learner)
    nodes = [node for rollout in rollouts for node in rollout.root.walk()]
    assert {len(node.completions) for node in nodes} == {1}
    assert {(node.turn, *node.waiting) for node in nodes} == {
        (0, "right"), (1, "left"), (2, "right"), (3,)
    }  # fmt: skip
    if branching == "chain" and name in ("madpo", "marlhf"):
        with pytest.raises(ConfigError, match=r"set group\.branching to tree"):
            learner.update(rollouts)
        return
    before = [p.clone() for name in AGENTS for p in learner.policies[name].model.parameters()]
    metrics = learner.update(rollouts)
    assert all(math.isfinite(value) for value in metrics.values())
    after = [p for name in AGENTS for p in learner.policies[name].model.parameters()]
    assert not all(map(torch.equal, before, after))


@pytest.mark.parametrize("name", ["magrpo", "ippo", "mappo", "ippo-head"])
def test_an_agent_that_waits_costs_no_prompt(name, monkeypatch):
    """Four decisions an episode are four prompts, for policies and for critics."""
    asked = []
    complete = Policy.complete

    def counted(self, prompts, *args, **options):
        asked.extend(prompts)
        return complete(self, prompts, *args, **options)

    monkeypatch.setattr(Policy, "complete", counted)
    options = {"critic": {"kind": "value_head"}} if name == "ippo-head" else {}
    learner = learner_of(
        name.split("-")[0], **merge_options(options, {"group": {"size": 2, "branching": "chain"}})
    )
    play_episodes([ToyEnv(RELAY, AGENTS)] * 1, learner, task_options=[{}], seeds=[0])
    assert len(asked) == 4
    rollouts = play(learner, rollouts=1)
    assert len(asked) == 8
    if name != "magrpo":
        prompts = learner.critics.estimate(rollouts).prompts
        # One a decision, and one after each answer that the chain does not continue from if its
        # agent acts next.
        readers = [reader for reader, _ in prompts]
        texts = [text for _, text in prompts]
        if name == "mappo":
            assert set(readers) == {"central"}
            assert all(text.startswith("[left]\n") for text in texts[:1])
        else:
            assert not any("Wait" in text for text in texts)
        assert len(prompts) <= 7


def test_a_central_critic_reads_those_who_wait_too():
    learner = learner_of("mappo", group={"size": 2, "branching": "chain"})
    rollouts = play(learner, rollouts=1)
    texts = [text for _, text in learner.critics.estimate(rollouts).prompts]
    assert "[left]\nPick 0 .\n\n[right]\nWait ." in texts
    assert any(text == "[right]\nPick 3 ." for text in texts)  # left has gone


def test_nothing_is_bootstrapped_where_agents_wait():
    learner = learner_of("ippo", group={"size": 2}, advantage={"bootstrap_truncated": True})
    rollouts = [dataclasses.replace(each, artificial_limit=True) for each in play(learner)]
    with pytest.raises(ConfigError, match=r"in turn 0 of task 'toy' right waited"):
        learner.update(rollouts)


@pytest.mark.parametrize("name", ["sft", "dpo"])
@pytest.mark.parametrize("alone", [False, True])
def test_files_of_turns_are_learnt_from(name, alone, relay_ids, tmp_path):
    agents = AGENTS[:1] if alone else AGENTS
    draw = random.Random(0)
    actor, samples = ReferenceActor(), 1
    if name == "dpo":
        actor, samples = ScriptedActor(lambda *_: TEXTS[draw.random() < 0.5]), 48
    path = tmp_path / "episodes.jsonl"
    collect(env_id=relay_ids[alone], actor=actor, out=path, split=None, samples=samples, tasks=1)
    options = {
        "sft": {"examples": {"episodes": str(path)}},
        "dpo": {"preferences": {"episodes": str(path), "num_pairs": 24}},
    }[name]
    method = "madpo" if name == "dpo" and not alone else name
    learner = learner_of(method, agents, **options)
    learner.plan_updates(40)
    before = mean_return(RELAY, learner, agents)
    for _ in range(40):
        learner.update([])
    after = mean_return(RELAY, learner, agents)
    assert after > (1.45 if name == "sft" else before + 0.5)


@pytest.mark.parametrize("name", ["sft", "madpo", "marlhf"])
def test_rollouts_of_turns_are_learnt_from(name):
    options = {
        "sft": {"examples": {"filter_reward": 1.2}},
        "madpo": {"group": {"size": 3, "branching": "tree"}, "preferences": {"num_pairs": 2}},
        "marlhf": {
            "group": {"size": 3, "branching": "tree"},
            "reward_model": {"lr": 1e-2},
            "preferences": {"num_pairs": 16},
        },
    }[name]
    learner = learner_of(name, **options)
    learner.plan_updates(20)
    for number in range(20):
        learner.update(play(learner, rollouts=2, seed=number))
    assert mean_return(RELAY, learner, AGENTS) > (1.1 if name == "sft" else 1.3)


def test_what_is_read_next_is_read_when_the_agent_acts_again():
    learner = learner_of(
        "sft",
        examples={"predict": "observations"},
        sampling={"max_new_tokens": 8},
        group={"size": 2},
    )
    tokenizer = learner.policies["left"].tokenizer
    seen = set()
    for rows in learner._played(play(learner, rollouts=1)).values():
        seen |= {tokenizer.decode(row.token_ids, skip_special_tokens=True) for row in rows}
    assert "Pick 2 ." in seen  # left, after a turn of waiting
    assert not any("Wait" in text or "<unk>" in text for text in seen)
