"""Token sampling with temperature, top-k and top-p, from given uniform numbers.

One uniform number per token and row, drawn in advance, makes the tokens of a row independent of the
other rows in its batch and of when they leave it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from mlrl_learners.errors import ConfigError

__all__ = ["Draw", "NucleusBlock", "SamplingConfig", "draw_tokens", "greedy_tokens"]

FIRST_CANDIDATES = 64


@dataclass(frozen=True)
class SamplingConfig:
    """How answers are sampled: their length, and the distribution of their tokens.

    Attributes:
        max_new_tokens: Most tokens of an answer, at least 1.
        temperature: Divisor of the logits, above 0.
        top_p: Probability that the most likely tokens must sum to, in (0, 1]; the others are never
            sampled.
        top_k: Sample from the k most likely tokens only; 0 for all.
        renormalize: Whether log-probabilities, sampled and trained, are those of the truncated
            distribution; false takes the whole distribution, as published libraries do, which
            biases the gradient when top_p or top_k truncates.
        stop: Texts that end an answer: the token that completes one is its last token, and its text
            ends before it.
    """

    max_new_tokens: int = 256
    temperature: float = 0.8
    top_p: float = 0.95
    top_k: int = 0
    renormalize: bool = True
    stop: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        if self.max_new_tokens < 1:
            raise ConfigError(f"max_new_tokens must be at least 1, got {self.max_new_tokens}")
        if not 0 < self.temperature < math.inf:
            raise ConfigError(f"temperature must be above 0, got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p must be in (0, 1], got {self.top_p}")
        if self.top_k < 0:
            raise ConfigError(f"top_k must be 0 (all) or more, got {self.top_k}")
        if not all(isinstance(text, str) and text for text in self.stop):
            raise ConfigError(f"stop must be a list of texts, none of them empty, got {self.stop}")
        if not self.renormalize and not self.truncates:
            raise ConfigError(
                "renormalize false has no effect without truncation, with top_p 1 and top_k 0: "
                "leave it out, or set top_p or top_k"
            )

    @property
    def truncates(self) -> bool:
        """Whether some tokens cannot be sampled."""
        return self.top_p < 1 or self.top_k > 0


class NucleusBlock(NamedTuple):
    """Nuclei of some rows of a batch, with equal numbers of candidates.

    Attributes:
        rows: Indices of the rows, `[b]`.
        candidates: Their most likely token ids in descending order, int32 `[b, K]`.
        sizes: Number of candidates in the nucleus, `[b]`; 0 for a row whose nucleus is in another
            block.
    """

    rows: Tensor
    candidates: Tensor
    sizes: Tensor


class Draw(NamedTuple):
    """One sampled token per row.

    Attributes:
        tokens: Token ids, `[B]`.
        logprobs: Their log-probabilities, `[B]`.
        log_masses: Log-probability of each row's nucleus, `[B]`; None if log-probabilities are of
            the whole distribution.
        nuclei: Nucleus of each row, in exactly one of the blocks. Empty if log-probabilities are
            of the whole distribution.
    """

    tokens: Tensor
    logprobs: Tensor
    log_masses: Tensor | None = None
    nuclei: tuple[NucleusBlock, ...] = ()


def draw_tokens(logits: Tensor, uniforms: Tensor, config: SamplingConfig) -> Draw:
    """Sample one token per row by inverting the cumulative distribution.

    Args:
        logits: Next-token logits, `[B, V]`.
        uniforms: Numbers in [0, 1), `[B]`.
        config: Temperature and truncation.

    Returns:
        Tokens with their log-probabilities under softmax(logits / temperature), renormalised over
        the nucleus if `config.renormalize`, and the nuclei.
    """
    scaled = logits.float() / config.temperature
    normalizer = torch.logsumexp(scaled, dim=-1, keepdim=True)  # [B, 1]
    if not config.truncates:
        cumulative = torch.exp(scaled - normalizer).double().cumsum(-1)  # [B, V]
        return Draw(*_with_logprobs(_invert(cumulative, uniforms), scaled, normalizer))
    tokens, inside, nuclei = _draw_truncated(scaled, normalizer, uniforms, config, FIRST_CANDIDATES)
    if not config.renormalize:
        return Draw(*_with_logprobs(tokens, scaled, normalizer))
    log_masses = (inside - normalizer).squeeze(-1)
    return Draw(*_with_logprobs(tokens, scaled, inside), log_masses, tuple(nuclei))


def greedy_tokens(logits: Tensor, config: SamplingConfig) -> Draw:
    """Return the most likely token per row and its log-probability in the whole distribution."""
    scaled = logits.float() / config.temperature
    normalizer = torch.logsumexp(scaled, dim=-1, keepdim=True)
    return Draw(*_with_logprobs(scaled.argmax(-1), scaled, normalizer))


def _with_logprobs(tokens: Tensor, scaled: Tensor, normalizer: Tensor) -> tuple[Tensor, Tensor]:
    return tokens, (scaled.gather(-1, tokens[:, None]) - normalizer).squeeze(-1)


def _draw_truncated(
    scaled: Tensor,
    normalizer: Tensor,
    uniforms: Tensor,
    config: SamplingConfig,
    num_candidates: int,
) -> tuple[Tensor, Tensor, list[NucleusBlock]]:
    """Sample from the nucleus without sorting the vocabulary.

    Usually a few most likely tokens sum to `top_p`; rows where they do not are repeated with eight
    times as many candidates. With top-k all k candidates are needed for the normalizer.

    Returns:
        Tokens `[B]`, the normalizers of the nuclei `[B, 1]`, and the nuclei.
    """
    vocabulary = scaled.shape[-1]
    limit = min(config.top_k or vocabulary, vocabulary)
    count = limit if config.top_k else min(num_candidates, limit)
    top, candidates = scaled.topk(count, dim=-1)  # [B, K], likeliest first
    cumulative = torch.exp(top - normalizer).double().cumsum(-1)  # [B, K]
    choice, sizes = _choose(cumulative, uniforms, config)
    tokens = candidates.gather(-1, choice[:, None]).squeeze(-1)
    outside = torch.arange(count, device=top.device) >= sizes[:, None]
    inside = torch.logsumexp(top.masked_fill(outside, -torch.inf), dim=-1, keepdim=True)  # [B, 1]
    nuclei = []
    if count < limit:
        short = torch.nonzero(cumulative[:, -1] < config.top_p).squeeze(-1)
        if len(short):
            tokens[short], inside[short], wider = _draw_truncated(
                scaled[short], normalizer[short], uniforms[short], config, count * 8
            )
            sizes[short] = 0
            nuclei = [block._replace(rows=short[block.rows]) for block in wider]
    # Later calls have thousands of candidates; `nonzero` has waited for the GPU by then.
    width = count if num_candidates == FIRST_CANDIDATES else int(sizes.max())
    rows = torch.arange(len(tokens), device=tokens.device)
    return tokens, inside, [NucleusBlock(rows, candidates[:, :width].int(), sizes), *nuclei]


def _choose(cumulative: Tensor, uniforms: Tensor, config: SamplingConfig) -> tuple[Tensor, Tensor]:
    """Choose one candidate per row from its nucleus.

    Args:
        cumulative: Cumulative probability of the candidates, `[B, K]`.
        uniforms: Numbers in [0, 1), `[B]`.
        config: Truncation.

    Returns:
        Index of the chosen candidate and size of the nucleus, `[B]` each.
    """
    if config.top_k:
        cumulative = cumulative / cumulative[:, -1:]  # top-p applies within the top-k
    # The nucleus ends with the token that reaches top_p, or the last token with probability above
    # 0; tokens of probability 0 are never included.
    enough = cumulative[:, -1:].clamp(max=config.top_p)
    last = (cumulative < enough).sum(-1, keepdim=True)
    return _invert(cumulative, uniforms, last), last.squeeze(-1) + 1


def _invert(cumulative: Tensor, uniforms: Tensor, last: Tensor | None = None) -> Tensor:
    """Return the first index whose cumulative share of the total exceeds the uniform number.

    Sums of rounded probabilities end slightly below or above 1. Numbers are therefore scaled by the
    actual sum; otherwise the largest ones would choose the last index, however unlikely it is.

    Args:
        cumulative: Cumulative probability, `[B, K]`.
        uniforms: Numbers in [0, 1), `[B]`.
        last: Last index that may be chosen, `[B, 1]`; its cumulative probability is the total. By
            default K - 1.
    """
    if last is None:
        last = torch.full_like(uniforms, cumulative.shape[-1] - 1, dtype=torch.long)[:, None]
    reached = uniforms.double()[:, None] * cumulative.gather(-1, last)
    index = torch.searchsorted(cumulative, reached, right=True)
    return torch.minimum(index, last).squeeze(-1)
