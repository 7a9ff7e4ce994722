"""All methods with all kinds of weights, KL terms, walks and numbers of turns.

A combination that means nothing is refused before a model is loaded. Any other one trains, changes
what it should and nothing else, and resumes bit-exactly. `make test-long` trains all of them; the
usual tests train a covering subset, in which every pair of options occurs.
"""

import dataclasses
import itertools
import math
from typing import NamedTuple

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError, ModelNotFoundError, UnknownNameError
from mlrl_learners.registry import BUILT_IN

TEAMS = [spec.name for spec in BUILT_IN if spec.max_agents != 1]
SINGLES = [spec.name for spec in BUILT_IN if spec.max_agents == 1]


def has_option(method, **option):
    """Return whether a method has an option; that there is no such model is found out last."""
    agents = ("left",) if method in SINGLES else ("left", "right")
    try:
        mlrl_learners.make(method, agents=agents, model="tiny-randm", **option)
    except UnknownNameError:
        return False
    except (ConfigError, ModelNotFoundError):
        return True
    raise AssertionError


WITHOUT_KL = [name for name in (*TEAMS, *SINGLES) if not has_option(name, penalty={"kl_coef": 0.1})]
WITHOUT_WALK = [
    name for name in (*TEAMS, *SINGLES) if not has_option(name, group={"branching": "tree"})
]

WEIGHTS = {
    "own": {},
    "shared": {"team": {"share_weights": True}},
    "lora": {"lora": {"rank": 2}},
    "frozen": {"team": {"frozen": ["left"]}},
}
KL = {
    "no_kl": {},
    "kl_in_loss": {"penalty": {"kl_coef": 0.1, "kl_in": "loss"}},
    "kl_in_reward": {"penalty": {"kl_coef": 0.1, "kl_in": "reward"}},
}
SMALL = {
    "sampling": {"max_new_tokens": 3},
    "group": {"size": 2},
    "compute": {"device": "cpu"},
    "optimizer": {"lr": 1e-2},
}


class Case(NamedTuple):
    """One combination."""

    method: str
    weights: str
    kl: str
    walk: str
    turns: int

    @property
    def agents(self):
        return ("left",) if self.method in SINGLES else ("left", "right")

    @property
    def options(self):
        # sft has no branching of its own: its walk is that of a run's rollout section.
        walk = {} if self.method in WITHOUT_WALK else {"group": {"branching": self.walk}}
        return merge_options(SMALL, WEIGHTS[self.weights], KL[self.kl], walk)

    @property
    def keeps_copies(self):
        """Whether there are copies of the starting weights.

        Adapters have their base instead, and preferences the frozen agent of the same source.
        """
        preferences = self.method in ("madpo", "dpo") and self.weights != "frozen"
        return self.weights != "lora" and (self.kl != "no_kl" or preferences)

    @property
    def refusals(self):
        """What the error may say; empty for a combination that trains."""
        found = []
        if self.method in WITHOUT_KL and self.kl != "no_kl":
            found.append("unknown option 'penalty'")
        if self.method in SINGLES and self.weights == "frozen":
            found.append("frozen names every agent, left: nobody learns")
        return found


ALL = list(
    itertools.starmap(
        Case, itertools.product([*TEAMS, *SINGLES], WEIGHTS, KL, ("tree", "chain"), (1, 2))
    )
)
REFUSED = [case for case in ALL if case.refusals]
TRAINED = [case for case in ALL if not case.refusals]


def pairs(case):
    """Return every pair of options of a combination."""
    return set(itertools.combinations(enumerate(case), 2))


def covering(cases):
    """Return a subset with every pair of options that occurs in the cases, chosen greedily."""
    open_pairs = set().union(*map(pairs, cases))
    chosen = []
    while open_pairs:
        chosen.append(max(cases, key=lambda case: len(pairs(case) & open_pairs)))
        open_pairs -= pairs(chosen[-1])
    return chosen


def name(case):
    return "-".join(map(str, case))


def make(case, seed=0, model="tiny-random"):
    learner = mlrl_learners.make(
        case.method, agents=case.agents, model=model, seed=seed, **case.options
    )
    learner.rollout = dataclasses.replace(learner.rollout, branching=case.walk)
    generator = torch.Generator().manual_seed(seed)
    for judge in judges_of(learner).values():  # a head of zeros has no gradient for its trunk
        with torch.no_grad():
            judge.head.weight.normal_(generator=generator)
    return learner


def pay(actions, agent):
    """Pay all agents alike, and hardly any two joint answers alike."""
    text = " ".join(actions.values())
    return sum(place * ord(c) for place, c in enumerate(text, 1)) % 97 / 97


def iterate(learner, toy, case, iteration):
    """Play and update once; return the metrics."""
    rollouts = toy.play(
        learner, tasks=("a", "b", "c"), seed=10 * iteration, max_turns=case.turns, reward=pay
    )
    return learner.update(rollouts)


def judges_of(learner):
    """Return the critics and the reward model of a learner by name."""
    team_critics = getattr(learner, "critics", None)
    judges = dict(team_critics.critics) if team_critics else {}
    if hasattr(learner, "reward_model"):
        judges["reward model"] = learner.reward_model._critic
    return judges


def models(learner):
    """Return the role and module of everything with weights that a learner holds, each once."""
    team = getattr(learner, "learner", learner)  # that of marlhf
    found = {f"policy {name}": policy.model for name, policy in team.policies.items()}
    terms = getattr(team, "reward_terms", None)
    references = getattr(team, "references", None) or (terms._references if terms else {})
    for name, judge in judges_of(learner).items():
        found |= {f"critic {name}": judge.trunk.model, f"head {name}": judge.head}
    found |= {f"reference {name}": policy.model for name, policy in references.items()}
    return {id(model): (label, model) for label, model in reversed(found.items())}.values()


def snapshot(learner):
    return {
        f"{label}: {name}": value.detach().clone()
        for label, model in models(learner)
        for name, value in itertools.chain(model.named_parameters(), model.named_buffers())
    }


def should_learn(key, case):
    """Tell whether some weights are to be changed by training."""
    if case.weights == "lora":
        return "lora_" in key or key.startswith("head")
    is_frozen = case.weights == "frozen" and key.startswith("policy left")
    return not (is_frozen or key.startswith("reference") or "inv_freq" in key)


def is_equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def learnt(weights, case):
    """Return those weights that training changes."""
    return {key: value for key, value in weights.items() if should_learn(key, case)}


def answers(learner):
    seen = [dict.fromkeys(learner.agents, text) for text in ("a, turn 0", "b, turn 1")]
    return [
        {
            agent: [(each.token_ids, each.logprobs) for each in group]
            for agent, group in node.items()
        }
        for node in learner.act(seen, explore=False)
    ]


def check(case, toy, folder):
    """Check all that must be true of a combination; return the weights that it ends with."""
    whole, resumed = make(case), make(case, seed=1)
    before = snapshot(whole)
    metrics = iterate(whole, toy, case, 0)
    whole.save(folder / name(case))
    metrics |= iterate(whole, toy, case, 1)
    after = snapshot(whole)
    assert all(isinstance(value, float) and math.isfinite(value) for value in metrics.values())
    assert before.keys() == after.keys()
    assert any(key.startswith("reference") for key in after) == case.keeps_copies, case
    changed = {key for key in after if not torch.equal(before[key], after[key])}
    assert changed == learnt(after, case).keys(), case
    resumed.load(folder / name(case))
    iterate(resumed, toy, case, 1)
    assert is_equal(snapshot(resumed), after), case
    assert answers(resumed) == answers(whole), case
    return after


def test_the_matrix_has_every_built_in_method():
    ours = [n for n, spec in mlrl_learners.registry.items() if "mlrl_learners" in str(spec.factory)]
    assert sorted([*TEAMS, *SINGLES]) == sorted(ours)


def test_methods_on_pairs_and_examples_have_no_kl_term_and_examples_no_walk():
    assert {"madpo", "dpo", "sft"} <= set(WITHOUT_KL)
    assert "sft" in WITHOUT_WALK
    assert not {"magrpo", "ippo", "marlhf", "grpo", "ppo"} & {*WITHOUT_KL, *WITHOUT_WALK}


def test_the_covering_subset_has_every_pair_of_options_that_occurs():
    everything, some = (set().union(*map(pairs, cases)) for cases in (TRAINED, covering(TRAINED)))
    assert some == everything


@pytest.mark.parametrize("method", [*TEAMS, *SINGLES])
def test_a_combination_is_refused_in_one_line_before_the_model_is_loaded(method):
    """There is no such model: where nothing is refused, that is the error."""
    for case in (case for case in ALL if case.method == method):
        with pytest.raises((ConfigError, UnknownNameError, ModelNotFoundError)) as error:
            make(case, model="tiny-randm")
        message = str(error.value)
        assert "\n" not in message
        if case.refusals:
            assert any(each in message for each in case.refusals), case
        else:
            assert error.type is ModelNotFoundError, case


def test_supervised_fine_tuning_leaves_the_walk_to_the_run():
    with pytest.raises(UnknownNameError, match=r"unknown option 'group\.branching'"):
        mlrl_learners.make(
            "sft", agents=("left",), model="tiny-randm", group={"branching": "chain"}
        )


@pytest.mark.parametrize("case", covering(TRAINED), ids=name)
def test_a_combination_changes_what_it_should_and_resumes_bit_exactly(case, toy, tmp_path):
    check(case, toy, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("method", "weights"), dict.fromkeys(case[:2] for case in TRAINED))
def test_every_combination_does_so_and_each_option_has_an_effect(method, weights, toy, tmp_path):
    """All combinations end with different weights, but a tree and a chain of one turn agree."""
    cases = [case for case in TRAINED if (case.method, case.weights) == (method, weights)]
    ends = [(case, learnt(check(case, toy, tmp_path), case)) for case in cases]
    for (one, its), (other, others) in itertools.combinations(ends, 2):
        is_same_play = one.turns == other.turns == 1 and one.kl == other.kl
        assert is_equal(its, others) == is_same_play, (one, other)
