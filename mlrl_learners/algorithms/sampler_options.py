"""Options of the sampler of rollouts."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.models import Endpoint
from mlrl_learners.config.options import check_unread
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import SamplingConfig

__all__ = ["SamplerOptions"]


@dataclass(frozen=True)
class SamplerOptions:
    """Who samples rollouts: the trained model, or an OpenAI-compatible server with token ids.

    Attributes:
        endpoint: Address of the server, such as `http://127.0.0.1:8000/v1`; empty to sample from
            the trained model. Evaluations are always played by the trained model.
        model: Name of the model on the server, for all trained agents or by agent; agents that are
            left out are played by the trained model.
        timeout_seconds: Time limit of one request in seconds, above 0.
        max_retries: Number of retries after a temporary failure, at least 0.
        max_concurrency: Largest number of parallel requests, at least 1.
        update: Program of the server, which loads the weights of the trainer before it samples:
            `mlrl`, `vllm` or `sglang`; `none` leaves its weights to the user.
        weights_folder: Folder for these weights, which the server sees under the same path.
    """

    endpoint: str = ""
    model: str | Mapping[str, str] = ""
    timeout_seconds: float = 600.0
    max_retries: int = 5
    max_concurrency: int = 64
    update: Literal["none", "mlrl", "vllm", "sglang"] = "none"
    weights_folder: str = ""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range, or has no effect beside another.
        """
        if not self.endpoint:
            names = [each.name for each in fields(self) if each.name != "endpoint"]
            check_unread(self, names, "an empty sampler.endpoint: set it to an address")
            return
        if (self.update == "none") != (not self.weights_folder):
            raise ConfigError(
                "update and weights_folder belong together, got "
                f"{self.update!r} and {self.weights_folder!r}"
            )
        if not self.model:
            raise ConfigError(f"model must name a model on {self.endpoint}, got {self.model!r}")
        try:
            for name in [self.model] if isinstance(self.model, str) else self.model.values():
                self.open(name, SamplingConfig())
        except InvalidArgumentError as error:
            raise ConfigError(str(error).replace("base_url", "endpoint")) from None

    def open(self, model: str, sampling: SamplingConfig) -> Endpoint:
        """Return the endpoint of a model on the server."""
        return Endpoint(
            self.endpoint,
            model,
            timeout_seconds=float(self.timeout_seconds),
            max_retries=self.max_retries,
            max_tokens=sampling.max_new_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_concurrency=self.max_concurrency,
        )
