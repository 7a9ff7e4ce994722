import functools
import json

import numpy as np
import pytest

from mlrl_envs.errors import ContractError
from mlrl_learners.types import Completion
from mlrl_learners.types.contract import check_answers, check_methods, check_metrics

WHERE = "Mine.update"
RED = Completion("red")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (None, "a list of 1 mappings; got None"),
        ([], "a list of 1 mappings"),
        ([None], "for exactly a, b; got None"),
        ([{"a": [RED, RED]}], r"for exactly a, b; got \['a'\]"),
        ([{"a": [RED] * 2, "b": [RED] * 2, "c": []}], "for exactly a, b"),
        ([{"a": [RED] * 2, "b": [RED]}], "2 completions for 'b'"),
        ([{"a": RED, "b": RED}], "2 completions for 'a'"),
        ([{"a": None, "b": None}], "2 completions for 'a'; got None"),
        ([{"a": [RED] * 2, "b": ["red"] * 2}], "Completions of text for 'b'; got 'red'"),
        ([{"a": [RED] * 2, "b": [RED, Completion(5)]}], "Completions of text for 'b'"),
    ],
)
def test_answers_that_were_not_asked_for_are_named(answers, message):
    with pytest.raises(ContractError, match=rf"Mine\.act .*{message}"):
        check_answers(answers, [{"a": "?", "b": "?"}], 2, "Mine.act")


def test_answers_to_all_that_were_asked_pass():
    check_answers([], [], 3, "Mine.act")
    check_answers([{"b": [RED], "a": (RED,)}], [{"a": "?", "b": "?"}], 1, "Mine.act")


@pytest.mark.parametrize(
    "name",
    [
        *("iteration", "step", "seconds", "train/return", "time/update_seconds", "eval/return"),
        *("left/tokens_per_second", "sampler/replaced", "train/reward/length"),
    ],
)
def test_a_metric_with_a_name_of_the_run_is_refused(name):
    with pytest.raises(ContractError, match=rf"Mine\.update returns the metric '{name}'"):
        check_metrics({"loss": 1.0, name: 1.0}, WHERE)


def test_names_of_agents_policies_and_samplers_are_free():
    metrics = {"left/loss": 1.0, "time/loss": 1.0, "train/loss": 2.0, "sampler/oldest_weights": 3.0}
    assert check_metrics(metrics, WHERE) == metrics


@pytest.mark.parametrize("metrics", [None, [], 3.0, {3: 1.0}])
def test_what_is_no_mapping_of_names_is_refused(metrics):
    with pytest.raises(ContractError, match=r"Mine\.update must return"):
        check_metrics(metrics, WHERE)


def test_metrics_are_floats_that_json_knows():
    metrics = {"loss": np.float32(1.5), "count": 2, "scale": np.array(0.5)}
    written = json.dumps(check_metrics(metrics, WHERE))
    assert json.loads(written) == {"loss": 1.5, "count": 2.0, "scale": 0.5}


@pytest.mark.parametrize("value", ["1.5", None, [1.5], np.zeros(2), 2j, 10**400])
def test_a_metric_that_is_no_number_is_named(value):
    with pytest.raises(
        ContractError, match=r"the metric 'loss' of Mine\.update must be a number; got"
    ):
        check_metrics({"loss": value}, WHERE)


def test_a_decorated_method_takes_what_its_decorator_takes():
    def with_draws(method):
        @functools.wraps(method)
        def decorated(self, *arguments, **options):
            return method(self, "draws", *arguments, **options)

        return decorated

    class Decorated:
        @with_draws
        def act(self, draws, observations, *, num_samples=1, explore=True):
            return []

        update = dict  # in C, without a signature

        def save(self, path):
            return None

        load = save

    check_methods(Decorated())
