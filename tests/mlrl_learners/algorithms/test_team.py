"""Teams of mixed model families, their system prompts, and invalid options."""

import pytest
import torch

from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError, UnknownNameError
from mlrl_learners.policies import tiny_model
from tests.mlrl_learners.algorithms.team_learners import (
    AGENTS,
    LORA,
    METHODS,
    equal,
    make,
    weights_of,
)

MIXED = {"left": "tiny-random", "right": "tiny-random-gpt2", "third": "tiny-random-gpt2"}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, LORA) for name in METHODS),
        *(("magrpo", options) for options in ({}, {"team": {"frozen": ["left"]}})),
    ],
)
def test_families_mix_in_one_team(name, options, toy, tmp_path):
    learner = make(name, model=MIXED, **merge_options(options, METHODS[name]))
    for seed in range(2):
        metrics = learner.update(toy.play(learner, seed=seed))
    assert all(torch.isfinite(torch.tensor(list(metrics.values()))))
    types = {a: learner.policies[a].model.config.model_type for a in AGENTS}
    assert types == {"left": "llama", "right": "gpt2", "third": "gpt2"}
    learner.save(tmp_path)
    other = make(name, model=MIXED, **merge_options(options, METHODS[name]))
    other.load(tmp_path)
    for who, policy in learner.policies.items():
        assert equal(weights_of(policy), weights_of(other.policies[who]))


NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
)


def test_every_role_has_its_system_prompt_whatever_its_template_knows():
    model, tokenizer = tiny_model()
    tokenizer.chat_template = NO_SYSTEM
    models = {"left": "tiny-random", "right": (model, tokenizer), "third": "tiny-random-gpt2"}
    learner = make(
        model=models, team={"system_prompts": {"left": "L!", "right": "R!", "third": "T!"}}
    )
    (answers,) = learner.act([dict.fromkeys(AGENTS, "hello")])
    read = {
        agent: learner.policies[agent].tokenizer.decode(answers[agent][0].prompt_ids)
        for agent in AGENTS
    }
    assert read["left"].startswith("<|im_start|>system\nL!<|im_end|>\n<|im_start|>user\nhello")
    assert read["right"] == "[user]R!\n\nhello"
    assert read["third"] == "T!\n\nhello"


def test_agents_of_one_policy_keep_their_own_system_prompts():
    learner = make(
        **merge_options(
            LORA, {"team": {"share_weights": True, "system_prompts": {"left": "L!", "right": "R!"}}}
        )
    )
    (answers,) = learner.act([dict.fromkeys(AGENTS, "hello")])
    prompts = {agent: answers[agent][0].prompt_ids for agent in AGENTS}
    assert len(set(prompts.values())) == 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"team": {"frozen": "third"}}, ConfigError, "frozen must be a list, got 'third'"),
        ({"team": {"frozen": ["fourth"]}}, UnknownNameError, "unknown agent 'fourth'"),
        ({"team": {"policies": {"left": 3}}}, ConfigError, "policies must be a mapping"),
        ({"lora": {"rank": 2.5}}, ConfigError, "lora.rank must be an int, got 2.5"),
        ({"lora": {"rank": 2, "targets": ["nope"]}}, UnknownNameError, "'nope'"),
        ({"team": {"system_prompts": {"lef": "x"}}}, UnknownNameError, "did you mean 'left'"),
        ({"adapters": 3}, UnknownNameError, "unknown option 'adapters'"),
    ],
)
def test_options_that_cannot_be_are_named(options, error, message):
    with pytest.raises(error, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sampling": {"max_new_tokens": 4096}},
            "max_new_tokens must leave room .* 4096 .*, got 4096",
        ),
        ({"team": {"max_prompt_tokens": -1}}, "max_prompt_tokens must be at least 0, got -1"),
    ],
)
def test_lengths_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        make(**options)


TOKENS = 37  # of the template with the system prompt "be brief"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"team": {"max_prompt_tokens": 37}},
            "max_prompt_tokens must be above 37, .* 'right', got 37",
        ),
        (
            {"team": {"max_prompt_tokens": 25}},
            "max_prompt_tokens must be above 37, .* 'right', got 25",
        ),
        (
            {"sampling": {"max_new_tokens": 4059}},
            "must leave more than 37 .* 'right', got 4059, .* leaves 37",
        ),
        (
            {"sampling": {"max_new_tokens": 4060}, "team": {"max_prompt_tokens": 99}},
            "must leave more than 37 .* 'right', got 4060, .* leaves 36",
        ),
    ],
)
def test_a_limit_without_room_for_an_observation_names_agent_limit_and_need(options, message):
    with pytest.raises(ConfigError, match=message):
        make(**merge_options(options, {"team": {"system_prompts": {"right": "be brief"}}}))


@pytest.mark.parametrize(
    "options",
    [{"team": {"max_prompt_tokens": TOKENS + 1}}, {"sampling": {"max_new_tokens": 4095 - TOKENS}}],
)
def test_room_for_one_token_of_an_observation_is_enough(options):
    learner = make(**merge_options(options, {"team": {"system_prompts": {"right": "be brief"}}}))
    (answer,) = learner.act([{"right": "x"}]) if "max_prompt_tokens" in options else ({},)
    assert not answer or len(answer["right"][0].prompt_ids) == TOKENS + 1


def test_an_agent_called_like_a_file_of_ours_needs_another_name_for_its_policy():
    with pytest.raises(ConfigError, match=r"agent 'generator\.pt'"):
        make(agents=("generator.pt", "right"))
    assert (
        "x"
        in make(agents=("generator.pt", "right"), team={"policies": {"generator.pt": "x"}}).policies
    )
