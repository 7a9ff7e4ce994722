"""Drawing of tokens, replayed as a CUDA graph where the logits are always in the same place.

A draw is some hundred small kernels, whose launches take longer than a decoding step of a small
model that is replayed as a graph itself.
"""

from collections.abc import Callable

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
        """Draw one token per row; the result is valid until the next draw.

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
        if self._replay is None:
            self._replay = self._record(self._recorder, logits, uniforms)
        if self._replay is None or self._uniforms is None:
            return draw_tokens(logits, uniforms, self._sampling)
        self._uniforms.copy_(uniforms)
        first = self._replay()
        if first.sizes is not None:  # kept with the nuclei, while the next replay writes again
            first = first._replace(sizes=first.sizes.clone())
        return finish_draw(first, uniforms, self._sampling)

    def _record(
        self, recorder: GraphRecorder, logits: Tensor, uniforms: Tensor
    ) -> Callable[[], FirstDraw] | None:
        self._uniforms = numbers = uniforms.clone()
        return recorder.record(lambda: first_draw(logits, numbers, self._sampling))
