"""Options of a team: variables of the chat template, stop texts, shared references."""

import pytest

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies.tiny import tiny_model

SMALL = {"sampling": {"max_new_tokens": 16}, "compute": {"device": "cpu"}}
THINKING = (
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}<no thoughts>{% endif %}"
)


def make(name="mareinforce", agents=("left",), model="tiny-random", **options):
    return mlrl_learners.make(name, agents=agents, model=model, **merge_options(SMALL, options))


def thinking_model():
    model, tokenizer = tiny_model()
    tokenizer.chat_template = THINKING
    return model, tokenizer


@pytest.mark.parametrize("name", ["mareinforce", "ippo"])
def test_variables_of_the_chat_template_reach_every_prompt(name):
    model = thinking_model()
    learner = make(name, model=model, team={"chat_template_kwargs": {"enable_thinking": False}})
    assert model[1].decode(learner.prompt_ids("left", "hi")) == "[user]hi<no thoughts>"
    assert model[1].decode(make(name, model=model).prompt_ids("left", "hi")) == "[user]hi"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"enable_thinkin": False}, "sets 'enable_thinkin', which no chat template"),
        ({"messages": []}, r"team\.chat_template_kwargs must not set messages"),
    ],
)
def test_variables_that_no_template_reads_are_refused(kwargs, message):
    with pytest.raises(ConfigError, match=message) as error:
        make(model=thinking_model(), team={"chat_template_kwargs": kwargs})
    assert "\n" not in str(error.value)


def test_answers_that_a_stop_text_ends_are_trained_as_they_were_sampled(toy):
    learner = make(sampling={"stop": ["e", "a", "!"]}, group={"size": 16})
    rollouts = toy.play(learner)
    answers = [c for r in rollouts for c in r.root.completions["left"]]
    assert any(each.finish_reason == "stop" for each in answers)
    assert learner.update(rollouts)["left/kl"] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("name", ["magrpo", "madpo"])
def test_policies_of_one_source_share_a_reference_and_others_do_not(name, toy):
    options = {"penalty": {"kl_coef": 0.1}} if name == "magrpo" else {"group": {"size": 4}}
    model = {"a": "tiny-random", "b": "tiny-random", "c": "tiny-random-gpt2"}
    learner = make(name, agents=("a", "b", "c"), model=model, **options)
    found = learner.references if name == "madpo" else learner.reward_terms._references
    assert found["a"] is found["b"]
    assert found["a"] is not found["c"]
    before = [p.clone() for p in found["a"].model.parameters()]
    learner.update(toy.play(learner))
    after = found["a"].model.parameters()
    assert all(bool((p == q).all()) for p, q in zip(before, after, strict=True))
