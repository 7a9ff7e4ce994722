import json
from dataclasses import replace

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import CheckpointError, ConfigError, UnknownNameError
from mlrl_learners.policies import tiny_model

AGENTS = ("left", "right", "third")
SMALL = {"sampling": {"max_new_tokens": 8}, "compute": {"device": "cpu"}, "optimizer": {"lr": 1e-2}}
LORA = {"lora": {"rank": 3}}
METHODS = {
    "magrpo": {"penalty": {"kl_coef": 0.1}},
    "ippo": {"critic": {"kind": "separate"}},
    "mappo": {},
    "iac": {"critic": {"kind": "value_head"}},
    "madpo": {"group": {"size": 4}},
    "sft": {},
}


def make(name="magrpo", agents=AGENTS, model="tiny-random", seed=0, **options):
    return mlrl_learners.make(
        name, agents=agents, model=model, seed=seed, **merge_options(SMALL, options)
    )


def weights_of(policy):
    return [weight.detach().clone() for weight in policy.parameters()]


def base_of(learner, agent="left"):
    policy = learner.policies[learner.policy_of[agent]]
    return [w.detach().clone() for w in policy.model.parameters() if not w.requires_grad]


def equal(some, others):
    return all(torch.equal(a, b) for a, b in zip(some, others, strict=True))


def without(rollouts, *agents):
    """Leave out what some agents wrote, so that others alone are learnt from."""
    return [
        replace(rollout, root=replace(rollout.root, completions=kept))
        for rollout in rollouts
        for kept in [{a: c for a, c in rollout.root.completions.items() if a not in agents}]
    ]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_adapters_and_leaves_base_and_frozen_agents_as_they_were(name, toy):
    learner = make(name, **merge_options(LORA, METHODS[name], {"team": {"frozen": ["third"]}}))
    base = base_of(learner)
    before = {who: weights_of(policy) for who, policy in learner.policies.items()}
    for seed in range(2):
        learner.update(toy.play(learner, seed=seed))
    assert len({id(policy.model) for policy in learner.policies.values()}) == 1
    assert equal(base_of(learner), base)
    assert all(not equal(before[who], weights_of(learner.policies[who])) for who in AGENTS[:2])
    assert list(learner.optimizers) == ["left", "right"]
    assert learner.policies["third"].parameters() == []


@pytest.mark.parametrize("name", METHODS)
def test_every_method_goes_on_to_the_bit_from_a_checkpoint_of_adapters_alone(name, toy, tmp_path):
    options = merge_options({"team": {"frozen": ["third"]}}, LORA, METHODS[name])
    learner = make(name, **options)
    learner.update(toy.play(learner))
    learner.save(tmp_path / "saved")
    learner.update(toy.play(learner, seed=1))
    resumed = make(name, **options)
    resumed.load(tmp_path / "saved")
    resumed.update(toy.play(resumed, seed=1))
    for who, policy in learner.policies.items():
        assert equal(weights_of(policy), weights_of(resumed.policies[who]))
    assert learner.act([dict.fromkeys(AGENTS, "a")]) == resumed.act([dict.fromkeys(AGENTS, "a")])
    stored = {path.name for path in tmp_path.rglob("*")}
    assert "model.safetensors" not in stored
    assert "adapter_model.safetensors" in stored


def test_updating_one_adapter_leaves_the_others_and_the_base_identical(toy):
    learner = make(**LORA)
    rollouts = toy.play(learner)
    base, before = base_of(learner), {a: weights_of(learner.policies[a]) for a in AGENTS}
    learner.update(without(rollouts, "right", "third"))
    changed = [a for a in AGENTS if not equal(before[a], weights_of(learner.policies[a]))]
    assert changed == ["left"]
    assert equal(base_of(learner), base)


def test_what_one_agent_learns_does_not_hang_on_the_adapters_beside_it(toy):
    together, alone = make(**LORA), make(**LORA)
    rollouts = toy.play(together)
    together.update(rollouts)
    alone.update(without(rollouts, "right", "third"))
    ours, theirs = (weights_of(learner.policies["left"]) for learner in (together, alone))
    assert equal(ours, theirs)


@pytest.mark.parametrize("name", ["magrpo", "ippo", "madpo"])
def test_relabelling_agents_relabels_their_adapters_and_changes_nothing_else(name, toy):
    other = {"left": "x", "right": "y", "third": "z"}
    learner = make(name, **merge_options(LORA, METHODS[name]))
    renamed = make(name, agents=tuple(other.values()), **merge_options(LORA, METHODS[name]))
    learner.update(toy.play(learner))
    renamed.update(toy.play(renamed))
    for agent in AGENTS:
        ours, theirs = learner.policies[agent], renamed.policies[other[agent]]
        assert equal(weights_of(ours), weights_of(theirs))


def test_an_adapter_learns_what_full_weights_would_in_its_directions(toy, monkeypatch):
    """At the start the gradient of the upper matrix is the full one seen through the lower."""
    full, adapted = (
        make(agents=("left",)),
        make(agents=("left",), **merge_options(LORA, {"lora": {"targets": ["o_proj"]}})),
    )
    rollouts = toy.play(full)
    full_gradients, gradients = [], []
    for learner, found in ((full, full_gradients), (adapted, gradients)):
        weights = learner.policies["left"].parameters()
        monkeypatch.setattr(
            learner.optimizers["left"],
            "step",
            lambda weights=weights, found=found: found.extend(w.grad for w in weights) or 1.0,
        )
        learner.update(rollouts)
    names = [name for name, _ in full.policies["left"].model.named_parameters()]
    places = [place for place, name in enumerate(names) if "o_proj" in name]
    downs = adapted.policies["left"].parameters()[::2]
    scale = adapted.config.lora.alpha / adapted.config.lora.rank
    for place, down, up in zip(places, downs, gradients[1::2], strict=True):
        assert torch.allclose(up, scale * full_gradients[place] @ down.T, atol=1e-5)


def test_agents_of_one_name_share_all_they_learn(toy):
    learner = make(team={"policies": {"left": "x", "right": "x"}})
    assert learner.policy_of == {"left": "x", "right": "x", "third": "third"}
    assert list(learner.optimizers) == ["x", "third"]
    metrics = learner.update(toy.play(learner))
    assert "x/loss" in metrics
    assert [optimizer.num_steps for optimizer in learner.optimizers.values()] == [1, 1]


def test_all_agents_may_share_one_adapter(toy):
    learner = make(**merge_options(LORA, {"team": {"share_weights": True}}))
    base = base_of(learner)
    learner.update(toy.play(learner))
    assert list(learner.optimizers) == ["shared"]
    assert equal(base_of(learner), base)


def test_a_frozen_agent_with_a_model_of_its_own_never_changes_and_plays_for_the_team(toy):
    learner = make(team={"frozen": ["third"]})
    frozen = [w.detach().clone() for w in learner.policies["third"].model.parameters()]
    rollouts = toy.play(learner, reward=lambda actions, agent: float(len(actions["third"])))
    metrics = learner.update(rollouts)
    assert equal(frozen, learner.policies["third"].model.parameters())
    assert metrics["third/completion_tokens"] > 0
    assert "third/loss" not in metrics
    assert float(metrics["left/grad_norm"]) > 0  # paid for what the frozen one wrote


def test_freezing_an_agent_leaves_the_weights_that_it_shares_trainable(toy):
    learner = make(team={"policies": {"left": "x", "right": "x"}, "frozen": ["right"]})
    rollouts = toy.play(learner)
    assert all(weight.requires_grad for weight in learner.policies["x"].model.parameters())
    before = weights_of(learner.policies["x"])
    learner.update(without(rollouts, "left", "third"))
    assert equal(before, weights_of(learner.policies["x"]))  # what it says is not learnt from
    learner.update(rollouts)
    assert not equal(before, weights_of(learner.policies["x"]))  # it plays with what others learn


def test_only_what_the_learning_agents_say_moves_shared_weights(toy, monkeypatch):
    free = make(seed=1, team={"policies": {"left": "x", "right": "x"}})
    rollouts = toy.play(free)
    held = make(seed=1, team={"policies": {"left": "x", "right": "x"}, "frozen": ["right"]})
    ours = toy.gradients(held, rollouts, monkeypatch)[0]
    theirs = toy.gradients(free, without(rollouts, "right"), monkeypatch)[0]
    assert torch.equal(ours, theirs)


def test_one_batch_serves_all_agents_that_share_a_base(monkeypatch):
    learner = make(**merge_options(LORA, {"team": {"frozen": ["third"]}}))
    calls = []
    for policy in learner.policies.values():
        plain = policy.complete
        monkeypatch.setattr(
            policy,
            "complete",
            lambda prompts, *a, plain=plain, **o: (
                calls.append(o["adapters"]) or plain(prompts, *a, **o)
            ),
        )
    answers = learner.act([dict.fromkeys(AGENTS, "a"), {"right": "b"}], num_samples=2)
    assert calls == [["left", "right", None, "right"]]
    assert [list(answer) for answer in answers] == [list(AGENTS), ["right"]]


def test_sampled_and_trained_logprobs_agree_for_every_agent_of_a_mixed_batch(toy):
    options = merge_options(
        {"sampling": {"temperature": 0.7, "top_p": 0.9, "max_new_tokens": 12}}, LORA
    )
    learner = make(**merge_options(options, {"team": {"frozen": ["third"]}}))
    for seed in range(2):
        learner.update(toy.play(learner, seed=seed))
    prompts = [dict.fromkeys(AGENTS, text) for text in ("short", "a longer one that is padded")]
    for answer in learner.act(prompts, num_samples=4):
        for agent, completions in answer.items():
            rows = [_row(completion) for completion in completions]
            trained, _ = learner.policies[agent].logprobs(rows, temperature=0.7)
            sampled = torch.tensor([lp for c in completions for lp in c.logprobs])
            assert float((sampled - trained.detach()).abs().max()) < 1e-4


def _row(completion):
    from mlrl_learners.engine import TokenRow

    return TokenRow.sampled(completion)


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


def test_references_and_critics_of_adapters_need_no_model_more(toy):
    learner = make("ippo", **merge_options(LORA, {"penalty": {"kl_coef": 0.1}}))
    models = {id(policy.model) for policy in learner.policies.values()}
    models |= {id(critic.trunk.model) for critic in learner.critics.critics.values()}
    models |= {id(policy.model) for policy in learner.reward_terms._references.values()}
    assert len(models) == 1


def test_critics_may_have_a_base_of_their_own(toy):
    learner = make("ippo", **merge_options(LORA, {"critic": {"model": "tiny-random-gpt2"}}))
    trunks = [critic.trunk for critic in learner.critics.critics.values()]
    assert {trunk.model.config.model_type for trunk in trunks} == {"gpt2"}
    assert len({id(trunk.model) for trunk in trunks}) == 1
    metrics = learner.update(toy.play(learner))
    assert metrics["left/critic_grad_norm"] > 0


def test_a_reward_model_is_an_adapter_on_the_same_base(toy):
    learner = make("marlhf", **LORA)
    trunk = learner.reward_model._critic.trunk
    before = weights_of(trunk)
    assert trunk.model is learner.policies["left"].model
    learner.update(toy.play(learner))
    assert not equal(before, weights_of(trunk))


def test_a_frozen_agent_has_no_critic():
    assert list(make("ippo", team={"frozen": ["third"]}).critics.critics) == ["left", "right"]


def test_a_checkpoint_of_other_policies_is_refused(tmp_path):
    make(**LORA).save(tmp_path)
    with pytest.raises(CheckpointError, match="is of a team"):
        make(**merge_options(LORA, {"team": {"share_weights": True}})).load(tmp_path)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"model": tiny_model(1), **LORA}, "belongs to the weights of 'tiny-random'"),
        ({"lora": {"rank": 2}}, "another rank than lora.rank 2"),
        ({}, "do not fit"),
        (
            {"team": {"frozen": ["left"]}, "lora": {"rank": 3}, "model": tiny_model(1)},
            "belongs to the weights of",
        ),
    ],
)
def test_a_checkpoint_of_another_base_or_kind_is_refused(other, message, tmp_path):
    make(**LORA).save(tmp_path)
    with pytest.raises(CheckpointError, match=message):
        make(**other).load(tmp_path)


def test_a_frozen_agent_is_named_but_not_stored(tmp_path):
    make(team={"frozen": ["third"]}).save(tmp_path)
    assert [path.name for path in (tmp_path / "third").iterdir()] == ["base.json"]
    assert json.loads((tmp_path / "third/base.json").read_text())["source"] == "tiny-random"


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


@pytest.mark.parametrize("text", ["{}", "[]", "3", "{", '{"policies": null}'])
@pytest.mark.parametrize(("name", "file"), [("magrpo", "team.json"), ("sft", "offline.json")])
def test_a_damaged_file_of_a_checkpoint_is_said_so(name, file, text, tmp_path):
    learner = make(name)
    learner.save(tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(CheckpointError):
        learner.load(tmp_path)
