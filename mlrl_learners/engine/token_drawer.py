"""Drawing of tokens, replayed as a CUDA graph where the logits are always in the same place.

A draw is some hundred small kernels, whose launches take longer than a decoding step of a small
model that is replayed as a graph itself.
"""

from typing import TYPE_CHECKING

from torch import Tensor

from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.engine.sampling import (
    Draw,
    FirstDraw,
    SamplingConfig,
    draw_tokens,
    finish_draw,
    first_draw,
    greedy_tokens,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TokenDrawer"]


class TokenDrawer:
    """Draws the tokens of one batch, step by step.

    Args:
        sampling: Temperature and truncation.
        recorder: Records draws from logits of a recorded step; None computes each as usual.
    """

    def __init__(self, sampling: SamplingConfig, recorder: GraphRecorder | None) -> None:
        self._sampling, self._recorder = sampling, recorder
        self._logits: Tensor | None = None  # of the last draw
        self._uniforms: Tensor | None = None  # that the recorded draw reads
        self._replay: Callable[[], FirstDraw] | None = None

    def draw(self, logits: Tensor, uniforms: Tensor | None) -> Draw:
        """Draw one token per row; the tokens are valid until the next draw.

        The most likely tokens need few kernels, and are never recorded.

        Args:
            logits: Next-token logits, `[B, V]`. A recorded step returns the same tensor each time.
            uniforms: Numbers in [0, 1), `[B]`; None for the most likely tokens.
        """
        if uniforms is None:
            return greedy_tokens(logits, self._sampling)
        if self._recorder is None or not self._recorder.usable:
            return draw_tokens(logits, uniforms, self._sampling)
        if logits is not self._logits:
            self._logits, self._replay = logits, None
            return draw_tokens(logits, uniforms, self._sampling)
        if self._replay is None or self._uniforms is None:
            self._uniforms = numbers = uniforms.clone()
            self._replay = self._recorder.record(
                lambda: first_draw(logits, numbers, self._sampling), required=False
            )
        if self._replay is None:
            self._recorder = None  # it would fail again
            return draw_tokens(logits, uniforms, self._sampling)
        self._uniforms.copy_(uniforms)
        first = self._replay()
        if first.sizes is not None:  # kept with the nuclei, while the next replay writes again
            first = first._replace(sizes=first.sizes.clone())
        return finish_draw(first, uniforms, self._sampling)

    def forget(self) -> None:
        """Free the recorded draw, whose memory is as large as the logits."""
        self._logits = self._uniforms = self._replay = None
