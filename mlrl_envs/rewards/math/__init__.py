"""Rewards of `mlrl/math-v1`."""
