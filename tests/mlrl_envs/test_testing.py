"""`check_env` finds each violation of the contract and names its rule."""

import itertools

import numpy as np
import pytest

import mlrl_envs
from mlrl_envs.errors import ContractError, InfraError, InvalidArgumentError
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.spaces import UnicodeText
from mlrl_envs.testing import JUNK_TEXTS

_counter = itertools.count()


def _make(env_type):
    family = mlrl_envs.make("mlrl/story-v1", max_turns=2).family
    return lambda: env_type(family, env_id="test/broken-v0")


class _Changed(TextParallelEnv):
    """Changes what `step` returns."""

    def step(self, actions):
        return self.change(*super().step(actions))


class WrongTotal(_Changed):
    def change(self, observations, rewards, *rest):
        return observations, dict.fromkeys(rewards, 0.5), *rest


class OutOfRange(_Changed):
    def change(self, observations, rewards, terminations, truncations, infos):
        for info in infos.values():
            info["components"] = {"bonus": 2.0}
        return observations, dict.fromkeys(rewards, 2.0), terminations, truncations, infos


class NotFinite(_Changed):
    def change(self, observations, rewards, *rest):
        return observations, dict.fromkeys(rewards, float("nan")), *rest


class NumpyRewards(_Changed):
    def change(self, observations, rewards, terminations, truncations, infos):
        rewards = {agent: np.float32(reward) for agent, reward in rewards.items()}
        for agent, reward in rewards.items():
            infos[agent]["components"] = {"bonus": reward}
        return observations, rewards, terminations, truncations, infos


class NumpyEnds(_Changed):
    def change(self, observations, rewards, terminations, *rest):
        return observations, rewards, dict.fromkeys(terminations, 0), *rest


class AgentMissing(_Changed):
    def change(self, observations, *rest):
        observations.popitem()
        return observations, *rest


class CommonInfo(_Changed):
    def change(self, *result):
        result[-1]["common"] = {}
        return result


class TimeInInfo(_Changed):
    def change(self, *result):
        for info in result[-1].values():
            info["diagnostics"] = {"run": next(_counter)}
        return result


class NoJson(_Changed):
    def change(self, *result):
        for info in result[-1].values():
            info["diagnostics"] = {"seen": {1, 2}}
        return result


class MoreInfo(_Changed):
    def change(self, *result):
        for info in result[-1].values():
            info["answer"] = 42
        return result


class BytesObservation(_Changed):
    def change(self, observations, *rest):
        return {agent: text.encode() for agent, text in observations.items()}, *rest


class SurrogateObservation(_Changed):
    def change(self, observations, *rest):
        return {agent: text + "\ud800" for agent, text in observations.items()}, *rest


class NewSpaces(TextParallelEnv):
    def action_space(self, agent):
        return UnicodeText()


class AsciiSpaces(TextParallelEnv):
    def reset(self, seed=None, options=None):
        if seed is None:
            return super().reset(options=options)
        return super().reset(seed=next(_counter), options=options)


class RaisesOnJunk(TextParallelEnv):
    def step(self, actions):
        if isinstance(actions, dict):
            str(actions.get("setup")).encode()
        return super().step(actions)


class TakesAnything(TextParallelEnv):
    def step(self, actions):
        known = {a: str(actions.get(a, "")) for a in self.possible_agents}
        return super().step(known)


class SharedTurns(TextParallelEnv):
    def __deepcopy__(self, memo):
        return self


class ForgetsOnCopy(TextParallelEnv):
    def __deepcopy__(self, memo):
        clone = super().__deepcopy__(memo)
        clone._turns = ()
        return clone


class NeverEnds(TextParallelEnv):
    @property
    def max_turns(self):
        return 1


class EndsAlone(TextParallelEnv):
    @property
    def agents(self):
        return [] if len(self.turns) == 1 else super().agents


class BytesState(TextParallelEnv):
    def state(self):
        return super().state().encode()


class WrongReference(TextParallelEnv):
    def reference_actions(self):
        return dict.fromkeys(self.possible_agents, "wrong")


class CloseOnce(TextParallelEnv):
    closed = False

    def close(self):
        if self.closed:
            raise RuntimeError("closed twice")
        self.closed = True


class Unpicklable(TextParallelEnv):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.hook = lambda: None


BROKEN = {
    WrongTotal: "sum to its reward",
    OutOfRange: "is in reward_range",
    NotFinite: "the reward of 'setup' is a finite float",
    NumpyRewards: "the reward of 'setup' is a finite float",
    NumpyEnds: "are bool",
    AgentMissing: "observations have the agents' keys",
    CommonInfo: "infos have the agents' keys",
    TimeInInfo: "the same again",
    NoJson: "is JSON",
    MoreInfo: "has the keys",
    BytesObservation: "is a plain str",
    SurrogateObservation: "is in its space",
    NewSpaces: "the same object each time",
    AsciiSpaces: "the same seed begins the same episode",
    RaisesOnJunk: "junk never raises",
    TakesAnything: "raises; found 'it did not'",
    SharedTurns: "leaves the original alone",
    ForgetsOnCopy: "steps like the original",
    NeverEnds: "ends",
    EndsAlone: "acts until its end",
    BytesState: r"state\(\) is a str",
    WrongReference: "reference_actions solves the task",
    CloseOnce: "close can be called twice",
    Unpicklable: "a pickle can be made",
}


@pytest.mark.parametrize("env_type", BROKEN, ids=lambda env_type: env_type.__name__)
def test_breach_is_found_and_named(env_type):
    with pytest.raises(ContractError, match=BROKEN[env_type]):
        mlrl_envs.check_env(_make(env_type))


def test_sound_environment_passes():
    mlrl_envs.check_env(_make(TextParallelEnv))


def test_junk_holds_the_known_traps():
    joined = "".join(JUNK_TEXTS)
    assert "" in JUNK_TEXTS
    assert "\x00" in joined
    assert "\ud800" in joined
    assert max(map(len, JUNK_TEXTS)) >= 1_000_000


def test_message_is_bounded():
    class Shouts(TextParallelEnv):
        def state(self):
            return b"x" * 1_000_000

    with pytest.raises(ContractError) as caught:
        mlrl_envs.check_env(_make(Shouts))
    assert len(str(caught.value)) <= 1000


def test_crash_of_an_environment_is_a_breach():
    class Crashes(TextParallelEnv):
        def reset(self, seed=None, options=None):
            raise ZeroDivisionError("oops")

    with pytest.raises(ContractError, match="ran into ZeroDivisionError"):
        mlrl_envs.check_env(_make(Crashes))


def test_failing_sandbox_is_no_breach():
    class NoWorker(TextParallelEnv):
        def step(self, actions):
            raise InfraError("no worker")

    with pytest.raises(InfraError):
        mlrl_envs.check_env(_make(NoWorker))


@pytest.mark.parametrize("given", ["mlrl/story-v1", mlrl_envs.make("mlrl/story-v1")])
def test_an_environment_in_place_of_a_function_is_refused(given):
    with pytest.raises(InvalidArgumentError, match="takes a function that makes an environment"):
        mlrl_envs.check_env(given)
