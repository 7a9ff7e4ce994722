"""Drawing tokens: temperature, top-k and top-p, from uniform numbers given from outside.

One uniform number a token, drawn beforehand for every row, makes a row's tokens independent of
which other rows share its batch and of when they leave it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from mlrl_learners.errors import ConfigError

__all__ = ["SamplingConfig", "draw_tokens", "greedy_tokens"]

FIRST_CANDIDATES = 64


@dataclass(frozen=True)
class SamplingConfig:
    """How answers are drawn.

    Attributes:
        max_new_tokens: Most tokens an answer may have, at least 1.
        temperature: What logits are divided by, above 0.
        top_p: Share of probability that the likeliest tokens must hold together, in (0, 1].
        top_k: Only the k likeliest tokens; 0 for all.
    """

    max_new_tokens: int = 256
    temperature: float = 0.8
    top_p: float = 0.95
    top_k: int = 0

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        if self.max_new_tokens < 1:
            raise ConfigError(f"max_new_tokens must be at least 1, got {self.max_new_tokens}")
        if not self.temperature > 0:
            raise ConfigError(f"temperature must be above 0, got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p must be in (0, 1], got {self.top_p}")
        if self.top_k < 0:
            raise ConfigError(f"top_k must be 0 (all) or more, got {self.top_k}")


def draw_tokens(logits: Tensor, uniforms: Tensor, config: SamplingConfig) -> tuple[Tensor, Tensor]:
    """Draw one token a row by inverting the cumulative distribution.

    Args:
        logits: Next-token logits, `[B, V]`.
        uniforms: Numbers in [0, 1), `[B]`.
        config: Temperature and truncation.

    Returns:
        Token ids `[B]`, and their log-probabilities `[B]` under softmax(logits / temperature):
        before truncation, which is the distribution that is trained.
    """
    scaled = logits.float() / config.temperature
    normalizer = torch.logsumexp(scaled, dim=-1, keepdim=True)  # [B, 1]
    if config.top_p == 1.0 and config.top_k == 0:
        cumulative = torch.exp(scaled - normalizer).double().cumsum(-1)  # [B, V]
        tokens = _invert(cumulative, uniforms)
    else:
        tokens = _draw_truncated(scaled, normalizer, uniforms, config)
    logprobs = (scaled.gather(-1, tokens[:, None]) - normalizer).squeeze(-1)
    return tokens, logprobs


def greedy_tokens(logits: Tensor, config: SamplingConfig) -> tuple[Tensor, Tensor]:
    """Return the likeliest token of each row and its log-probability, as `draw_tokens` does."""
    scaled = logits.float() / config.temperature
    tokens = scaled.argmax(-1)
    logprobs = scaled.gather(-1, tokens[:, None]).squeeze(-1) - torch.logsumexp(scaled, dim=-1)
    return tokens, logprobs


def _draw_truncated(
    scaled: Tensor,
    normalizer: Tensor,
    uniforms: Tensor,
    config: SamplingConfig,
    num_candidates: int = FIRST_CANDIDATES,
) -> Tensor:
    """Draw from the nucleus without sorting the vocabulary.

    A few likeliest tokens mostly hold `top_p`; for the rows where they do not, look at eight times
    as many. With top-k all k are needed: they are what the probabilities are shares of.
    """
    vocabulary = scaled.shape[-1]
    limit = min(config.top_k or vocabulary, vocabulary)
    count = limit if config.top_k else min(num_candidates, limit)
    top, candidates = scaled.topk(count, dim=-1)  # [B, K], likeliest first
    cumulative = torch.exp(top - normalizer).double().cumsum(-1)  # [B, K]
    tokens = _draw_candidate(candidates, cumulative, uniforms, config)
    if count < limit:
        short = torch.nonzero(cumulative[:, -1] < config.top_p).squeeze(-1)
        if len(short):
            tokens[short] = _draw_truncated(
                scaled[short], normalizer[short], uniforms[short], config, count * 8
            )
    return tokens


def _draw_candidate(
    candidates: Tensor, cumulative: Tensor, uniforms: Tensor, config: SamplingConfig
) -> Tensor:
    """Draw one of the candidates `[B, K]` of each row, of which `top_p` are in the nucleus."""
    total = cumulative[:, -1:]
    if config.top_k:
        cumulative = cumulative / total  # top-p counts within the top-k, as is usual
    inside = (cumulative < config.top_p).sum(-1, keepdim=True)  # the token that reaches p is in
    last = inside.clamp(max=candidates.shape[-1] - 1)
    nucleus = cumulative.gather(-1, last)
    choice = _invert(cumulative / nucleus, uniforms)
    choice = torch.minimum(choice, last.squeeze(-1))
    return candidates.gather(-1, choice[:, None]).squeeze(-1)


def _invert(cumulative: Tensor, uniforms: Tensor) -> Tensor:
    """Return the first index whose cumulative probability exceeds the uniform number."""
    index = torch.searchsorted(cumulative, uniforms.double()[:, None], right=True).squeeze(-1)
    return index.clamp(max=cumulative.shape[-1] - 1)
