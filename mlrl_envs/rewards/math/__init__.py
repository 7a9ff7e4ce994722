"""Rewards of `mlrl/math-v2`."""
