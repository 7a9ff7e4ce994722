"""Configuration of runs: YAML, overrides and option checks."""
