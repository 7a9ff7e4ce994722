"""Language models behind environments; the only package of `mlrl_envs` that runs or asks models.

Environments receive a model as an object: an expert that advises agents, a judge, or a text scorer
(`mlrl_envs.models.scorers`). Importing this package imports neither a client library nor torch.
"""

from mlrl_envs.models.advice import AdvisedFamily
from mlrl_envs.models.chat import ChatReply
from mlrl_envs.models.client import API_KEY_VARIABLE
from mlrl_envs.models.endpoint import Endpoint, as_endpoint
from mlrl_envs.models.smollm2 import SMOLLM2, smollm2_folder
from mlrl_envs.models.tokens import TokenReply, TokenRequest
from mlrl_envs.models.weights import WeightProtocol, load_weights
from mlrl_envs.types import Messages

__all__ = [
    "API_KEY_VARIABLE",
    "SMOLLM2",
    "AdvisedFamily",
    "ChatReply",
    "Endpoint",
    "Messages",
    "TokenReply",
    "TokenRequest",
    "WeightProtocol",
    "as_endpoint",
    "load_weights",
    "smollm2_folder",
]
