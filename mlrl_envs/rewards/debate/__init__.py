"""Rewards of `mlrl/debate-v0`."""
