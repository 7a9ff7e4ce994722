"""Benchmarks: speed comparisons, learning curves, result files and the demo."""
