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

__all__ = [
    "Draw",
    "FirstDraw",
    "NucleusBlock",
    "SamplingConfig",
    "draw_tokens",
    "finish_draw",
    "first_draw",
    "greedy_tokens",
]

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


class FirstDraw(NamedTuple):
    """One token per row, drawn from few candidates.

    Attributes:
        scaled: Logits divided by the temperature, float32 `[B, V]`.
        normalizer: Their log-sum-exp, `[B, 1]`.
        tokens: Token ids, `[B]`.
        inside: Log-sum-exp over the nucleus of each row, `[B, 1]`; `normalizer` if nothing is
            truncated.
        candidates: The K most likely token ids in descending order, `[B, K]`; None if nothing is
            truncated, and the following are None too.
        sizes: Number of candidates in each nucleus, `[B]`.
        is_short: Whether the candidates do not reach `top_p`, `[B]`: the row is drawn again.
        any_short: Whether any of them is short, a scalar.
    """

    scaled: Tensor
    normalizer: Tensor
    tokens: Tensor
    inside: Tensor
    candidates: Tensor | None = None
    sizes: Tensor | None = None
    is_short: Tensor | None = None
    any_short: Tensor | None = None


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
    return finish_draw(first_draw(logits, uniforms, config), uniforms, config)


def first_draw(logits: Tensor, uniforms: Tensor, config: SamplingConfig) -> FirstDraw:
    """Draw from `FIRST_CANDIDATES` candidates if there is truncation; waits for no device.

    Usually a few most likely tokens sum to `top_p`, so that the vocabulary need not be sorted. With
    top-k all k candidates are needed for the normalizer. Arguments are those of `draw_tokens`.
    """
    scaled = logits.float() / config.temperature
    normalizer = torch.logsumexp(scaled, dim=-1, keepdim=True)  # [B, 1]
    if config.truncates:
        return _draw_truncated(scaled, normalizer, uniforms, config, FIRST_CANDIDATES)
    cumulative = torch.exp(scaled - normalizer).double().cumsum(-1)  # [B, V]
    return FirstDraw(scaled, normalizer, _invert(cumulative, uniforms), normalizer)


def finish_draw(first: FirstDraw, uniforms: Tensor, config: SamplingConfig) -> Draw:
    """Draw short rows again from more candidates, and compute log-probabilities.

    Args:
        first: Result of `first_draw`; its tensors are changed.
        uniforms: The same numbers, `[B]`.
        config: The same options.
    """
    tokens, inside, nuclei = _with_wider(first, uniforms, config)
    if not nuclei or not config.renormalize:
        return Draw(*_with_logprobs(tokens, first.scaled, first.normalizer))
    log_masses = (inside - first.normalizer).squeeze(-1)
    return Draw(*_with_logprobs(tokens, first.scaled, inside), log_masses, tuple(nuclei))


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
) -> FirstDraw:
    """Sample from the nuclei as far as they are within the most likely candidates."""
    vocabulary = scaled.shape[-1]
    limit = min(config.top_k or vocabulary, vocabulary)
    count = limit if config.top_k else min(num_candidates, limit)
    top, candidates = scaled.topk(count, dim=-1)  # [B, K], likeliest first
    cumulative = torch.exp(top - normalizer).double().cumsum(-1)  # [B, K]
    choice, sizes = _choose(cumulative, uniforms, config)
    tokens = candidates.gather(-1, choice[:, None]).squeeze(-1)
    outside = torch.arange(count, device=top.device) >= sizes[:, None]
    inside = torch.logsumexp(top.masked_fill(outside, -torch.inf), dim=-1, keepdim=True)  # [B, 1]
    first = FirstDraw(scaled, normalizer, tokens, inside, candidates, sizes)
    if count == limit:
        return first
    is_short = cumulative[:, -1] < config.top_p
    return first._replace(is_short=is_short, any_short=is_short.any())


def _with_wider(
    first: FirstDraw, uniforms: Tensor, config: SamplingConfig, *, trims: bool = False
) -> tuple[Tensor, Tensor, list[NucleusBlock]]:
    """Repeat short rows with eight times as many candidates.

    Args:
        first: A draw.
        uniforms: Numbers in [0, 1), `[B]`.
        config: Temperature and truncation.
        trims: Whether to drop candidates outside of all nuclei, which waits for the device.

    Returns:
        Tokens `[B]`, the log-sum-exp over the nuclei `[B, 1]`, and the nuclei.
    """
    tokens, inside, candidates, sizes = first.tokens, first.inside, first.candidates, first.sizes
    if candidates is None or sizes is None:
        return tokens, inside, []
    count, nuclei = candidates.shape[-1], []
    if first.is_short is not None and bool(first.any_short):
        short = torch.nonzero(first.is_short).squeeze(-1)
        scaled, normalizer, numbers = first.scaled[short], first.normalizer[short], uniforms[short]
        again = _draw_truncated(scaled, normalizer, numbers, config, count * 8)
        tokens[short], inside[short], wider = _with_wider(again, numbers, config, trims=True)
        sizes[short] = 0
        nuclei = [block._replace(rows=short[block.rows]) for block in wider]
    width = int(sizes.max()) if trims else count  # there may be thousands of candidates
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
