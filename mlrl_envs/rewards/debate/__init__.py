"""Rewards of `mlrl/debate-v1`."""
