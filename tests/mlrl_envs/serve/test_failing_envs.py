"""Environments that fail, cannot be copied or do not repeat: typed errors, replayed episodes."""

import copy
import itertools
import threading

import grpc
import pytest
from pettingzoo import ParallelEnv

import mlrl_envs
from mlrl_envs.errors import InfraError, OverloadedError, RemoteEnvError
from mlrl_envs.sandbox import Outcome
from mlrl_envs.serve.messages import METHODS, PROTOCOL, SERVICE, message
from mlrl_envs.serve.server import FAILURE_KEY
from mlrl_envs.spaces import UnicodeText

ERRORS = {"cursed": InfraError("the machine is on fire"), "busy": OverloadedError("too busy")}


class Shaky:
    """A sandbox that fails on programs with a word, with one error or another."""

    def run_many(self, programs):
        for program in programs:
            for word, error in ERRORS.items():
                if word in program.source:
                    raise error
        return [Outcome("failed", 0, 1) for _ in programs]


def _shaky_env():
    return mlrl_envs.make("mlrl/humaneval-v1", split="all", num_aux=0, sandbox=Shaky())


@pytest.fixture
def shaky_id():
    name = "tests/shaky-v0"
    mlrl_envs.register(name, _shaky_env)
    return name


def test_failing_program_is_the_typed_error_of_its_item_only(start_server, shaky_id):
    server = start_server(ids=[shaky_id])
    env = server.make(shaky_id)
    env.reset(seed=0, options={"task_index": 0})
    name = _shaky_env().family.tasks[0].entry_point
    code = f"```python\ndef {name}(*args):\n    return '{{}}'\n```"
    texts = [{"main": code.format(word)} for word in ("fair", "cursed", "busy")]
    envs = [copy.deepcopy(env) for _ in texts]
    fair, cursed, busy = mlrl_envs.step_many(envs, texts, errors="return")
    assert fair[1] == {"main": 0.0}
    assert (type(cursed), str(cursed)) == (InfraError, "the machine is on fire")
    assert type(busy) is OverloadedError
    assert envs[1].agents == ["main"]


class Counting(ParallelEnv):
    """An environment that holds a lock, so that it cannot be copied."""

    num_tasks, max_turns, reward_range = 1, 9, (0.0, 9.0)
    made = itertools.count()

    def __init__(self, deterministic=True, explode=()):
        self.metadata = {"name": "tests/counting-v0", "deterministic": deterministic}
        self.possible_agents, self.agents, self.explode = ["a"], [], explode
        self.state_space, self.lock, self.total = UnicodeText(), threading.Lock(), 0
        self.space = UnicodeText()

    def observation_space(self, agent):
        return self.space

    def action_space(self, agent):
        return self.space

    def reset(self, seed=None, options=None):
        self._may_explode("reset")
        self.agents, self.total = ["a"], seed or 0
        return {"a": str(self.total)}, {"a": {}}

    def step(self, actions):
        self._may_explode("step")
        self.total += len(actions["a"])
        return {"a": str(self.total)}, {"a": 1.0}, {"a": False}, {"a": False}, {"a": {}}

    def _may_explode(self, method):
        if method in self.explode:
            raise ZeroDivisionError("a secret of the server")

    def state(self):
        self._may_explode("state")
        return str(self.total)

    def render(self):
        return None

    def reference_actions(self):
        return None

    def close(self):
        pass


def _counting_server(start_server, **options):
    name = f"tests/counting-v{next(Counting.made)}"
    mlrl_envs.register(name, lambda: Counting(**options))
    server = start_server(ids=[name])
    return server, server.make(name)


def test_fork_of_an_environment_that_cannot_be_copied_is_replayed(start_server):
    _, env = _counting_server(start_server)
    env.reset(seed=10)
    env.step({"a": "12"})
    fork = copy.deepcopy(env)
    assert env.step({"a": "345"})[0] == {"a": "15"}
    assert fork.step({"a": "6"})[0] == {"a": "13"}
    assert env.step({"a": ""})[0] == {"a": "15"}


def test_lost_episode_that_does_not_repeat_is_an_error(start_server):
    server, env = _counting_server(start_server, deterministic=False)
    env.reset(seed=10)
    env.step({"a": "12"})
    fork = copy.deepcopy(env)
    env.step({"a": "3"})
    with pytest.raises(RemoteEnvError, match="the turn is played already"):
        fork.step({"a": "4"})
    server.forget()
    with pytest.raises(RemoteEnvError, match="the session is not here"):
        env.step({"a": "5"})


def test_closing_a_copy_leaves_an_episode_that_does_not_repeat(start_server):
    _, env = _counting_server(start_server, deterministic=False)
    env.reset(seed=10)
    env.step({"a": "12"})
    for _ in range(3):
        copy.deepcopy(env).close()
        env.state()
    assert env.step({"a": "3"})[0] == {"a": "13"}


CALLS = {
    "reset": lambda env: env.reset(seed=1),
    "step": lambda env: env.step({"a": ""}),
    "state": lambda env: env.state(),
}


@pytest.mark.parametrize("method", CALLS)
def test_exception_of_an_environment_shows_its_type_and_is_logged(start_server, caplog, method):
    _, env = _counting_server(start_server, explode=(method,))
    if method != "reset":
        env.reset(seed=1)
    with pytest.raises(RemoteEnvError, match="failed with ZeroDivisionError") as caught:
        CALLS[method](env)
    assert "secret" not in str(caught.value)
    assert caplog.text.count("ZeroDivisionError: a secret of the server") == 1


@pytest.mark.parametrize("method", ["Describe", "Open", "Restore"])
def test_an_environment_that_cannot_be_made_is_a_failure_that_is_logged(
    start_server, caplog, method
):
    def explode(**_options):
        raise ZeroDivisionError("a secret of the server")

    name = f"tests/counting-v{next(Counting.made)}"
    mlrl_envs.register(name, explode)
    failure = _failure_of(start_server(ids=[name]), method, env_id=name)
    assert failure.message == "the server failed with ZeroDivisionError; its log has the details"
    assert "ZeroDivisionError: a secret of the server" in caplog.text


@pytest.mark.parametrize("options", [b"5", b"[]", b"{", b"[" * 9_999, b'{"env_id":"x"}'])
@pytest.mark.parametrize("method", ["Describe", "Open", "Restore"])
def test_options_that_are_no_mapping_of_options_are_a_mistake(server, caplog, method, options):
    failure = _failure_of(server, method, env_id="mlrl/nim-v0", options=options)
    assert failure.type == "InvalidArgumentError"
    assert "option" in failure.message
    assert not caplog.records


def _failure_of(server, method, **place):
    """Return the failure of a request about an environment."""
    request = message(METHODS[method][0])(place=place)
    if method == "Describe":
        request.protocol = PROTOCOL
    with grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=message(METHODS[method][1]).FromString,
        )
        with pytest.raises(grpc.RpcError) as caught:
            call(request)
    trailing = dict(caught.value.trailing_metadata())
    return message("Failure").FromString(trailing[FAILURE_KEY])
