"""Reward cards: audits of the built-in environments, stored in `benchmarks/audits`."""
