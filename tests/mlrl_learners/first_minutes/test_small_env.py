"""Stumble 7: an environment with what PettingZoo asks for and no more."""

import pytest
from pettingzoo.test import parallel_api_test

import mlrl_envs
import mlrl_learners
from mlrl_envs.errors import ContractError
from mlrl_envs.spaces import UnicodeText
from mlrl_learners.evaluation.collect import collect

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def guess():
    """The class of the environment in `me.py`."""
    return mlrl_envs.registry["me.py:Guess"].load()


def careful(guess):
    """Return the class with the mistakes of callers refused, as the contract asks."""

    space = UnicodeText()

    class Careful(guess):
        def observation_space(self, agent):
            return space

        action_space = observation_space

        agents = property(lambda self: list(self.__dict__.get("inside", ())))

        @agents.setter
        def agents(self, value):
            self.__dict__["inside"] = list(value)

        def reset(self, seed=None, options=None):
            if {"task_index", "task_id"} & set(options or {}):
                raise ValueError("there are no tasks")
            return super().reset(seed, options)

        def step(self, actions):
            wrong = set(actions) != set(self.agents)
            if not self.agents or wrong or not all(type(a) is str for a in actions.values()):
                raise ValueError("one text for each agent")
            return super().step(actions)

    return Careful


def test_pettingzoo_accepts_it(guess):
    parallel_api_test(guess(), num_cycles=4)


def test_check_env_names_a_rule_and_no_attribute(guess):
    with pytest.raises(ContractError, match=r"observation_space\('a'\) holds any text"):
        mlrl_envs.check_env(guess)


def test_check_env_says_what_is_optional(guess, monkeypatch):
    monkeypatch.setattr("mlrl_envs.testing.contract._check_copies", lambda *_: None)  # of a local
    with pytest.warns(UserWarning, match="works without") as told:
        mlrl_envs.check_env(careful(guess))
    message = str(told[0].message)
    for name in ("reward_range (bounds", "num_tasks (", "max_turns (", "infos[agent]['solved']"):
        assert name in message


def test_check_env_says_what_is_needed():
    class Nothing:
        agents = ()

    with pytest.raises(ContractError, match=r"possible_agents \(all agents.*step \(step\(actions"):
        mlrl_envs.check_env(Nothing)


def test_it_is_evaluated_played_and_trained_on(type_json):
    result = type_json("evaluate me.py:Guess --actor me.py:says_yes")
    assert (result["mean_return"], result["split"], len(result["episodes"])) == (1.0, None, 16)
    assert type_json("play me.py:Guess --actor random")["env_id"] == "me.py:Guess"
    learner = mlrl_learners.make("my_learner.py:MyLearner", agents=["a", "b"], replies=["yes"])
    result = mlrl_learners.train(
        env="me.py:Guess", learner=learner, iterations=2, eval_every=1, run_dir="a", progress=False
    )
    assert result.metrics["train/return"] == 1.0


def test_its_episodes_are_collected_with_no_split(type_json, here):
    result = type_json("collect me.py:Guess --actor me.py:says_yes --out g.jsonl")
    assert (result["episodes"], result["played"]) == (16, 16)
    actor = mlrl_learners.ScriptedActor(lambda agent, text: "yes")
    again = collect(env_id="me.py:Guess", actor=actor, out=here / "h.jsonl")
    assert again.kept == 16


def test_validate_says_what_it_needs(type_in):
    status, _, err = type_in("validate me.py:Guess")
    assert (status, err.count("\n")) == (2, 1)
    assert "num_tasks" in err


def test_validate_takes_the_split_in_either_spelling(type_in, type_json):
    for option in ("--split", "--env.split"):
        assert type_json(f"validate mlrl/story-v1 {option} eval")["options"]["split"] == "eval"
        status, _, err = type_in(f"validate mlrl/story-v1 {option} x")
        assert (status, err) == (
            2,
            "mlrl: unknown split 'x'; known: all, eval, sample, test, train\n",
        )
