"""Benchmarks: figures of speed side by side with peers, and the demo."""
