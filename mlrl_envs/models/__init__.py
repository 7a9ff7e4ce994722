"""Clients of language models; the only package of `mlrl_envs` that sends requests to models.

Environments receive a model as an object: an expert that advises agents, or a judge. Importing this
package does not import a client library.
"""

from mlrl_envs.models.advice import AdvisedFamily
from mlrl_envs.models.chat import API_KEY_VARIABLE, ChatReply
from mlrl_envs.models.endpoint import Endpoint, as_endpoint
from mlrl_envs.types import Messages

__all__ = [
    "API_KEY_VARIABLE",
    "AdvisedFamily",
    "ChatReply",
    "Endpoint",
    "Messages",
    "as_endpoint",
]
