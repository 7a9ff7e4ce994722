"""Curves, kept runs and intervals that several benchmarks share."""
