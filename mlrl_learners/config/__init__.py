"""Configuration of runs: YAML files, presets, overrides and option checks."""
