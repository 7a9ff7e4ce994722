"""Rewards of `mlrl/math-v0`."""
