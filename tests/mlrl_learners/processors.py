"""Abilities of the processor that runs the tests."""

import pytest
import torch

from mlrl_learners.engine.kernels.onednn import packs

__all__ = ["needs_bfloat16"]

needs_bfloat16 = pytest.mark.skipif(
    not packs(torch.bfloat16), reason="this processor has no bfloat16 products"
)
