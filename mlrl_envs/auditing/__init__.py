"""Attacks on the reward of an environment: families, search, honest answers and the report."""
