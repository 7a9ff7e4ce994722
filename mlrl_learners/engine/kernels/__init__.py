"""Numeric kernels: language-model head, attention, normalisation and matrix products."""
