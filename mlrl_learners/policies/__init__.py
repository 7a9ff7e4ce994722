"""Models as policies: loading, prompting, sampling. Importing this needs torch and transformers."""

from transformers.utils import logging

from mlrl_learners.engine.sampling import SamplingConfig
from mlrl_learners.policies.chat import ChatFormat
from mlrl_learners.policies.loading import ModelSource, load_model
from mlrl_learners.policies.policy import Policy
from mlrl_learners.policies.tiny import tiny_model

logging.disable_progress_bar()  # one bar a weight file, in the middle of a run's own

__all__ = ["ChatFormat", "ModelSource", "Policy", "SamplingConfig", "load_model", "tiny_model"]
