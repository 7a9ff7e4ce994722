"""The process that samples, in this process."""

import pytest

from mlrl_learners.cluster.sampler_worker import ModelSource, SamplerWorker
from mlrl_learners.errors import ConfigError
from mlrl_learners.runs.provenance import computing_versions


def test_process_with_other_packages_than_the_trainer_does_not_sample():
    other = {**computing_versions(), "torch": "0.1"}
    worker = SamplerWorker({"model0": ModelSource(None, None, other)}, "cpu", 1)
    with pytest.raises(ConfigError, match=r"the trainer .*'torch': '0\.1'.*: install the same"):
        worker.ready()
