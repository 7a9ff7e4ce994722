"""An audit names what it cannot use, or lacks, of anybody's environment."""

import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError


class Guess:
    """One agent and one turn; "yes" is paid."""

    possible_agents = ("writer",)
    metadata = {"name": "tests/guess-v0"}  # noqa: RUF012  as PettingZoo's users write it
    reward_range = (0.0, 1.0)
    agents = ()

    def reset(self, seed=None, options=None):
        self.agents = ["writer"]
        return {"writer": "Say yes."}, {"writer": {}}

    def step(self, actions):
        self.agents = []
        reward = self.score(actions["writer"])
        return {"writer": ""}, {"writer": reward}, {"writer": True}, {"writer": False}, {}

    def score(self, text):
        return float(text == "yes")

    def reference_actions(self):
        return {"writer": "yes"}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("reward_range", 1, "need finite low < high in reward_range, got 1"),
        ("num_tasks", 0, "num_tasks of at least 1, got 0"),
        ("score", lambda _: None, "rewards that are numbers, got {'writer': None}"),
        ("reference_actions", lambda: "text", "must map agents to texts, got 'text'"),
        ("legal_actions", lambda _: [], r"Guess has no acting \(the agents that are asked"),
    ],
)
def test_what_an_audit_cannot_use_is_named(name, value, words):
    env = Guess()
    setattr(env, name, value)
    run = mlrl_envs.audit_game if mlrl_envs.is_game(env) else mlrl_envs.audit
    with pytest.raises(InvalidArgumentError, match=words):
        run(env, budget=60, tasks=2)


@pytest.mark.parametrize("name", ["reward_range", "possible_agents", "metadata"])
def test_a_name_that_an_audit_needs_is_asked_for(name):
    class Lacking(Guess):
        def __getattribute__(self, asked):
            if asked == name:
                raise AttributeError(asked)
            return super().__getattribute__(asked)

    with pytest.raises(InvalidArgumentError, match=rf"Lacking has no {name} \(.*the audit needs"):
        mlrl_envs.audit(Lacking(), budget=60, tasks=2)
