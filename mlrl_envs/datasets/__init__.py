"""Data sets: each file turns the rows of one source into tasks."""
