"""Ids of environments of servers, and the settings of a connection."""

import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.serve import remote_id


def test_ids_of_servers_are_built_and_checked():
    assert remote_id("mlrl/x-v0", None) == "mlrl/x-v0"
    assert remote_id("mlrl/x-v0", ["a:1", "b:2"]) == "remote://a:1,b:2/mlrl/x-v0"
    with pytest.raises(InvalidArgumentError, match="host:port"):
        remote_id("mlrl/x-v0", "a")


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        ({"retries": 0}, "retries must be an int from 1"),
        ({"retries": 1.5}, "retries must be an int from 1"),
        ({"retries": True}, "retries must be an int from 1"),
        ({"deadline_seconds": 0}, "deadline_seconds must be above 0"),
        ({"retry_seconds": "60"}, "retry_seconds must be a finite number"),
        ({"tls": "yes"}, "tls must be true or false"),
        ({"token_file": 3}, "token_file must be a path"),
        ({"retry": 3}, "did you mean 'retries'"),
        ({3: 3}, "unknown option 3"),
        (5, "connection must be a mapping"),
        (0, "connection must be a mapping"),
        ("token", "connection must be a mapping"),
    ],
)
def test_a_connection_is_checked(connection, message):
    with pytest.raises(InvalidArgumentError, match=message):
        mlrl_envs.make("remote://127.0.0.1:1/mlrl/nim-v0", connection=connection)
