"""Files of tokens that change while a process uses them."""

import pytest

import mlrl_envs
from mlrl_envs.errors import RemoteEnvError
from mlrl_envs.serve.access import Tokens

OLD, NEW = "0123456789abcdef0", "fedcba98765432100"
TEXTS = {"setup": "A fox waits.", "story": "The fox waited for the snow."}


@pytest.fixture
def old_file(tmp_path):
    path = tmp_path / "old"
    path.write_text(OLD)
    return path


@pytest.fixture
def own_file(tmp_path):
    path = tmp_path / "own"
    path.write_text(OLD)
    return path


def test_corrected_token_is_read_again(start_server, old_file, own_file):
    server = start_server(ids=["mlrl/story-v1"], token_file=old_file)
    connection = {"token_file": str(own_file)}
    own_file.write_text("wrong-wrong-wrong-wrong")
    with pytest.raises(RemoteEnvError, match="wants a known token"):
        server.make("mlrl/story-v1", connection=connection)
    own_file.write_text(OLD)
    assert server.make("mlrl/story-v1", connection=connection).reset(seed=1)


def test_file_that_cannot_be_read_again_is_the_refusal(start_server, old_file, own_file):
    server = start_server(ids=["mlrl/story-v1"], token_file=old_file)
    env = server.make("mlrl/story-v1", connection={"token_file": str(own_file)})
    own_file.unlink()
    old_file.write_text(NEW)
    server.server.tokens = Tokens(old_file)
    with pytest.raises(RemoteEnvError, match="wants a known token"):
        env.reset(seed=1)


def test_episodes_on_several_servers_go_on_with_a_new_token(start_server, old_file, own_file):
    servers = [start_server(ids=["mlrl/story-v1"], token_file=old_file) for _ in range(2)]
    name = f"remote://{','.join(each.address for each in servers)}/mlrl/story-v1"
    connection = {"token_file": str(own_file)}
    envs = mlrl_envs.make_vec(name, 4, max_turns=2, connection=connection).envs
    twins = mlrl_envs.make_vec("mlrl/story-v1", 4, max_turns=2).envs
    for each in (envs, twins):
        mlrl_envs.reset_many(each, range(4), [None] * 4)
    for path in (old_file, own_file):
        path.write_text(NEW)
    for server in servers:
        server.server.tokens = Tokens(old_file)
    actions = [TEXTS] * 4
    assert mlrl_envs.step_many(envs, actions) == mlrl_envs.step_many(twins, actions)
