"""Rewards: attempts to scores, each file one formula or two; the only callers of the sandbox."""
