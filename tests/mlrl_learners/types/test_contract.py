import json

import numpy as np
import pytest

from mlrl_envs.errors import ContractError
from mlrl_learners.types.contract import check_metrics

WHERE = "Mine.update"


@pytest.mark.parametrize(
    "name",
    [
        *("iteration", "step", "seconds", "train/return", "time/update_seconds", "eval/return"),
        *("left/tokens_per_second", "sampler/replaced"),
    ],
)
def test_a_metric_with_a_name_of_the_run_is_refused(name):
    with pytest.raises(ContractError, match=rf"Mine\.update returns the metric '{name}'"):
        check_metrics({"loss": 1.0, name: 1.0}, WHERE)


def test_names_of_agents_policies_and_samplers_are_free():
    metrics = {"left/loss": 1.0, "training": 2.0, "sampler/oldest_weights": 3.0}
    assert check_metrics(metrics, WHERE) == metrics


@pytest.mark.parametrize("metrics", [None, [], 3.0, {3: 1.0}])
def test_what_is_no_mapping_of_names_is_refused(metrics):
    with pytest.raises(ContractError, match=r"Mine\.update returns"):
        check_metrics(metrics, WHERE)


def test_metrics_are_floats_that_json_knows():
    metrics = {"loss": np.float32(1.5), "count": 2, "scale": np.array(0.5)}
    written = json.dumps(check_metrics(metrics, WHERE))
    assert json.loads(written) == {"loss": 1.5, "count": 2.0, "scale": 0.5}


@pytest.mark.parametrize("value", ["1.5", None, [1.5], np.zeros(2), 2j, 10**400])
def test_a_metric_that_is_no_number_is_named(value):
    with pytest.raises(ContractError, match=r"the metric 'loss' of Mine\.update is a number, got"):
        check_metrics({"loss": value}, WHERE)
