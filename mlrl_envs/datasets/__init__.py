"""Loaders of data sets, built-in samples, and generated problems."""
