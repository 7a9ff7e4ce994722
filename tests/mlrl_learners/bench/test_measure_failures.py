"""Measures whose requests or episodes fail are tried again, and are whole or missing."""

import pytest

from mlrl_envs.errors import EndpointError
from mlrl_learners.bench.measures import MEASURES_FILE, measure_suite
from mlrl_learners.bench.results import read_result, write_result
from mlrl_learners.bench.suite_run import RunSettings, play_suite
from mlrl_learners.types import Completion
from tests.mlrl_learners.bench.games_suite import suite

DOWN = range(1, 10**9)


class Server:
    """An actor that names the first column; some requests fail."""

    def __init__(self):
        self.requests, self.failing = 0, range(0)

    def act(self, observations, *, num_samples=1, explore=True):
        self.requests += 1
        if self.requests in self.failing:
            raise EndpointError("connection refused")
        return [{agent: [Completion("1")] * num_samples for agent in each} for each in observations]


@pytest.fixture
def measure_with(make_source, tmp_path):
    """Play a game without failures, then measure it by a server that may fail."""

    def measure(env_id, failing, attempts=2):
        server, source = Server(), make_source()
        source.make = lambda agents, *, env_id, tokens, seed: server
        asked, settings = suite(env_id), RunSettings(attempts=attempts, batch_size=2)
        played = play_suite(asked, source, tmp_path, settings)
        server.requests, server.failing = 0, failing
        return measure_suite(asked, source, played, tmp_path, settings)

    return measure


@pytest.mark.parametrize("env_id", ["mlrl/connect-four-v0", "mlrl/kuhn-v0"])
def test_measures_of_a_server_that_is_down_are_missing_and_asked_for_again(
    measure_with, tmp_path, env_id
):
    name = f"{env_id}:sample"
    down = measure_with(env_id, DOWN)
    assert down.of_entry == {name: {"figures": {}}}
    assert {(each.error, each.message) for each in down.failures[name]} == {
        ("EndpointError", "measures: connection refused")
    }
    assert not (tmp_path / MEASURES_FILE).exists()
    again = measure_with(env_id, range(0))
    assert again.failures == {}
    assert again.of_entry[name]["figures"]


def test_a_value_against_a_script_is_a_mean_over_all_seats_or_none(measure_with, tmp_path):
    whole = measure_with("mlrl/connect-four-v0", range(0))
    (tmp_path / MEASURES_FILE).unlink()
    second_seat = range(11, 10**9)  # the games of the first take ten requests
    assert measure_with("mlrl/connect-four-v0", second_seat).failures
    assert not (tmp_path / MEASURES_FILE).exists()
    assert measure_with("mlrl/connect-four-v0", range(0)) == whole


@pytest.mark.parametrize(
    ("env_id", "failing"),
    [("mlrl/connect-four-v0", range(1, 3)), ("mlrl/kuhn-v0", range(1, 2))],
)
def test_a_request_that_fails_once_is_tried_again(measure_with, tmp_path, env_id, failing):
    whole = measure_with(env_id, range(0))
    (tmp_path / MEASURES_FILE).unlink()
    assert measure_with(env_id, failing) == whole
    assert len((tmp_path / MEASURES_FILE).read_text().splitlines()) == 1


def test_a_result_without_its_measures_is_not_complete(measure_with, make_source, tmp_path, quick):
    found = measure_with("mlrl/connect-four-v0", DOWN)
    asked, settings = suite("mlrl/connect-four-v0"), RunSettings()
    source = make_source()
    source.make = lambda agents, *, env_id, tokens, seed: Server()
    played = play_suite(asked, source, tmp_path, settings)
    path = tmp_path / "result.json"
    write_result(path, asked, source.describe(), played, settings, measures=found)
    result = read_result(path)
    assert not result["complete"]
    assert [each["message"] for each in result["failures"]] == ["measures: connection refused"]
