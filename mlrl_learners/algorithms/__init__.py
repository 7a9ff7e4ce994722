"""The learning algorithms: one file a method, presets as configuration."""
