import json
import random
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest

import mlrl_learners
from mlrl_envs.errors import ContractError
from mlrl_learners.errors import NumericsError
from mlrl_learners.testing import ScriptedActor, check_learner
from mlrl_learners.types import Actor, Completion, Learner, Nucleus, RolloutConfig


class Bandit:
    """Learns which of a few answers pays, an agent at a time; knows nothing of torch."""

    ARMS = ("red", "green", "blue")

    def __init__(self, seed=0):
        self.random = random.Random(seed)
        self.value = {}

    def act(self, observations, *, num_samples=1, explore=True):
        return [
            {a: [Completion(self.arm(a, explore)) for _ in range(num_samples)] for a in node}
            for node in observations
        ]

    def arm(self, agent, explore):
        if explore:
            return self.random.choice(self.ARMS)
        return max(self.ARMS, key=lambda arm: self.value.get(f"{agent}/{arm}", 0.0))

    def update(self, rollouts):
        rewards = defaultdict(list)
        for rollout in rollouts:
            for node in rollout.root.walk():
                for step in node.steps:
                    for agent, sample in step.samples.items():
                        text = node.completions[agent][sample].text
                        rewards[f"{agent}/{text}"].append(step.rewards[agent])
        self.value |= {name: sum(values) / len(values) for name, values in rewards.items()}
        return {"bandit/arms": float(len(self.value))}

    def save(self, path):
        state = {"value": self.value, "random": self.random.getstate()}
        (path / "bandit.json").write_text(json.dumps(state))

    def load(self, path):
        state = json.loads((path / "bandit.json").read_text())
        version, numbers, gauss = state["random"]
        self.value = state["value"]
        self.random.setstate((version, tuple(numbers), gauss))


def broken(**methods):
    return type("Broken", (Bandit,), methods)


def fewer(self, observations, *, num_samples=1, explore=True):
    return Bandit.act(self, observations, num_samples=1, explore=explore)


def everyone(self, observations, *, num_samples=1, explore=True):
    answer = {a: [Completion("red")] * num_samples for a in ("first", "second")}
    return [answer for _ in observations]


def no_text(self, observations, *, num_samples=1, explore=True):
    return [{a: [Completion(None)] * num_samples for a in node} for node in observations]


def bare_text(self, observations, *, num_samples=1, explore=True):
    return [{a: ["red"] * num_samples for a in node} for node in observations]


def never_greedy(self, observations, *, num_samples=1, explore=True):
    return Bandit.act(self, observations, num_samples=num_samples, explore=True)


def out_of_order(self, observations, *, num_samples=1, explore=True):
    first, *rest = [
        {a: [Completion(text[:9])] * num_samples for a, text in node.items()}
        for node in sorted(observations, key=str)
    ] or [None]
    return [first, *rest] if first else []


def lonely_tokens(self, observations, *, num_samples=1, explore=True):
    completion = Completion("red", token_ids=(1, 2), logprobs=(-0.5,))
    return [{a: [completion] * num_samples for a in node} for node in observations]


def positive_logprobs(self, observations, *, num_samples=1, explore=True):
    completion = Completion("red", token_ids=(1,), logprobs=(0.5,))
    return [{a: [completion] * num_samples for a in node} for node in observations]


def lonely_nucleus(self, observations, *, num_samples=1, explore=True):
    nucleus = Nucleus(np.ones(3, np.int32), np.ones(3, np.int32), np.zeros(3, np.float32))
    completion = Completion("red", token_ids=(1,), logprobs=(0.0,), nucleus=nucleus)
    return [{a: [completion] * num_samples for a in node} for node in observations]


def always_explores(self, observations, *, num_samples=1):
    return Bandit.act(self, observations, num_samples=num_samples)


def takes_nothing(self):
    return {}


def save_by_text(self, path):
    Bandit.save(self, path + "/bandit")


def nan_metrics(self, rollouts):
    return {"loss": float("nan")}


def own_return(self, rollouts):
    return {"train/return": 9.0}


def nothing(self, *_, **__):
    return None


def save_values_only(self, path):
    other = Bandit(seed=99)
    other.value = self.value
    other.save(path)


def save_and_forget(self, path):
    Bandit.save(self, path)
    self.value = {"first/blue": 9.0, "second/blue": 9.0}


def save_only_random(self, path):
    kept, self.value = self.value, {}
    Bandit.save(self, path)
    self.value = kept


def test_a_learner_without_torch_passes():
    assert isinstance(Bandit(), Learner)
    check_learner(Bandit)
    mlrl_learners.check_learner(Bandit, agents=("a", "b", "c"))


@pytest.mark.parametrize(
    ("methods", "promise"),
    [
        ({"save": None}, "must have a method save"),
        ({"act": always_explores}, r"Broken\.act must take one argument, num_samples=.*'explore'"),
        ({"update": takes_nothing}, r"Broken\.update must take one argument: too many"),
        ({"save": save_by_text}, "save raised TypeError"),
        ({"rollout": 4}, "RolloutConfig"),
        ({"act": fewer}, "act must return 3 completions for 'first'"),
        ({"act": everyone}, "for exactly first"),
        ({"act": no_text}, "Completions of text"),
        ({"act": bare_text}, "Completions of text"),
        ({"act": nothing}, "act"),
        ({"act": never_greedy}, "greedy"),
        ({"act": out_of_order}, "in the order"),
        ({"act": lonely_tokens}, "one log-probability a token"),
        ({"act": positive_logprobs}, "not above 0"),
        ({"act": lonely_nucleus}, "one size a token"),
        ({"update": nan_metrics}, "'loss': nan"),
        ({"update": nothing}, "must return a mapping"),
        ({"update": own_return}, "'train/return', which the run itself writes"),
        ({"save": save_values_only}, "random state"),
        ({"save": save_and_forget}, "save changes nothing"),
        ({"save": save_only_random}, "greedy answers are the same"),
    ],
)
def test_a_learner_that_breaks_a_promise_is_told_which(methods, promise):
    def update(self, rollouts):
        self.value = {"first/blue": 1.0, "second/green": 1.0}
        return {}

    with pytest.raises(ContractError, match=promise):
        check_learner(broken(**({"update": update} | methods)))


class Momentum(ScriptedActor):
    """Forgets the state of its optimizer: stumble 16 of a new user."""

    def __init__(self, keeps=()):
        super().__init__(lambda agent, text: "x")
        self.keeps, self.state = keeps, {"weight": 1.0, "velocity": 0.0}

    def update(self, rollouts):
        loss = self.state["weight"] ** 2
        self.state["velocity"] = 0.9 * self.state["velocity"] + 0.1 * self.state["weight"]
        self.state["weight"] -= self.state["velocity"]
        return {"loss": loss}

    def save(self, path):
        kept = {name: self.state[name] for name in self.keeps}
        (path / "state.json").write_text(json.dumps(kept))

    def load(self, path):
        self.state |= json.loads((path / "state.json").read_text())


def test_a_learner_that_does_not_save_its_optimizer_is_found():
    check_learner(lambda: Momentum(keeps=("weight", "velocity")))
    with pytest.raises(ContractError, match="update 2 returns the same: save the optimizer too"):
        check_learner(lambda: Momentum(keeps=("weight",)))


def test_an_update_that_raises_on_equal_rewards_is_found():
    def update(self, rollouts):
        rewards = {s.rewards["first"] for r in rollouts for s in r.root.steps}
        return {"spread": 1 / (max(rewards) - min(rewards))}

    with pytest.raises(ContractError, match="update raised ZeroDivisionError"):
        check_learner(broken(update=update))


def test_the_group_size_a_learner_asks_for_is_what_it_is_given():
    seen = set()

    class Asks(Bandit):
        rollout = RolloutConfig(num_samples=5)

        def update(self, rollouts):
            seen.update(len(r.root.steps) for r in rollouts)
            return super().update(rollouts)

    check_learner(Asks)
    assert seen == {5}


def test_a_scripted_actor_repeats_its_answer():
    actor = ScriptedActor(lambda agent, text: f"{agent} heard {text}")
    assert isinstance(actor, Actor)
    (answer,) = actor.act([{"a": "hi"}], num_samples=2)
    assert [c.text for c in answer["a"]] == ["a heard hi"] * 2


def test_checking_loads_no_torch():
    script = "import mlrl_learners.testing, sys; print('torch' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


def test_updates_are_checked_on_agents_that_take_turns():
    seen = []

    class Looks(Bandit):
        def update(self, rollouts):
            nodes = [node for rollout in rollouts for node in rollout.root.walk()]
            seen.append({(*node.completions, "|", *node.waiting) for node in nodes})
            return super().update(rollouts)

    check_learner(Looks)
    assert seen[0] == {("first", "second", "|")}
    assert {("first", "|", "second"), ("second", "|", "first")} in seen


def test_a_learner_that_asks_everybody_in_every_turn_is_found():
    def update(self, rollouts):
        nodes = [node for rollout in rollouts for node in rollout.root.walk()]
        return {"answers": float(sum(len(node.completions["second"]) for node in nodes))}

    with pytest.raises(ContractError, match=r"update raised KeyError\('second'\)"):
        check_learner(broken(update=update))


def test_an_error_of_ours_is_not_changed():
    def update(self, rollouts):
        raise NumericsError("the loss is nan")

    with pytest.raises(NumericsError, match="the loss is nan"):
        check_learner(broken(update=update))


def test_a_learner_in_place_of_a_function_is_refused():
    with pytest.raises(ContractError, match="takes a function that makes a learner, got Bandit"):
        check_learner(Bandit())
