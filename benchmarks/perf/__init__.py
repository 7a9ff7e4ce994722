"""Figures of speed, one script each; every one measures both sides in one run."""
