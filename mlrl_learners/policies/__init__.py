"""Models as policies: loading, prompting, sampling. Importing this needs torch and transformers."""

from mlrl_learners.policies.chat import ChatFormat
from mlrl_learners.policies.loading import ModelSource, load_model
from mlrl_learners.policies.policy import Policy
from mlrl_learners.policies.sampling import SamplingConfig
from mlrl_learners.policies.tiny import tiny_model

__all__ = ["ChatFormat", "ModelSource", "Policy", "SamplingConfig", "load_model", "tiny_model"]
